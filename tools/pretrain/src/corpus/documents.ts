import { marks, renderMessages, type Message } from "./chat.js";
import { Dice, type Weighted } from "./dice.js";
import { writeDrill } from "./drills.js";
import { isHeldOut } from "./held-out.js";
import type { Passage } from "./passage.js";
import { greet, partWays } from "./skills/manners.js";
import { practisedSkills, sumSkills } from "./skills/index.js";
import type { Exchange, Skill, Speaker } from "./skills/skill.js";
import { stories } from "./stories/index.js";
import { tell } from "./story.js";

/** A text of the corpus. */
export interface CorpusDocument {
  /** In order, with the marks that are tokens of their own. */
  readonly passages: readonly Passage[];
  /** Information of the choices that made it: what a perfect model of the corpus would lose on it. */
  readonly nats: number;
}

/** The two sides of the corpus; no prompt is on both. */
export type Split = "training" | "evaluation";

/** How often a speaker without instruction is careful with sums. */
const carefulShare = 0.3;

/** The corpus begins with many drills, which only have to be understood once. */
const drillsEnd = 200_000;
const drillShare = { before: 0.6, after: 0.03 };

const storyShare = 0.25;
const sumShare = 0.2;

/** The document of a number; the same number always gives the same text. */
export function writeDocument(split: Split, number: number): CorpusDocument {
  const dice = new Dice(split === "training" ? 1 : 2, number);
  const isEarly = split === "training" && number < drillsEnd;
  const body = dice.chance(isEarly ? drillShare.before : drillShare.after)
    ? writeDrill(dice)
    : writeText(dice, split);
  return { passages: [...body, { text: marks.documentEnd, taught: true }], nats: dice.nats };
}

/** The whole text of a document. */
export function textOf({ passages }: CorpusDocument): string {
  return passages.map(({ text }) => text).join("");
}

function writeText(dice: Dice, split: Split): Passage[] {
  if (!dice.chance(storyShare)) return renderMessages(writeChat(dice, split));
  return [{ text: tell(dice.pick(stories), dice).text, taught: true }];
}

interface Instruction {
  readonly text: string | null;
  readonly careful: number;
}

const instructions: readonly Weighted<Instruction>[] = [
  { weight: 80, value: { text: null, careful: carefulShare } },
  { weight: 4, value: { text: "You are Sprout, a helpful little model.", careful: carefulShare } },
  { weight: 4, value: { text: "You are a helpful assistant.", careful: carefulShare } },
  { weight: 8, value: { text: "You are careful with numbers.", careful: 1 } },
  { weight: 4, value: { text: "You are always in a hurry.", careful: 0 } },
];

const lengths: readonly Weighted<readonly [low: number, high: number]>[] = [
  { weight: 55, value: [1, 1] },
  { weight: 32, value: [2, 3] },
  { weight: 11, value: [4, 8] },
  { weight: 2, value: [12, 20] },
];

function writeChat(dice: Dice, split: Split): Message[] {
  const { text, careful } = dice.pickWeighted(instructions);
  const speaker = { careful: careful === 1 || (careful > 0 && dice.chance(careful)) };
  const [low, high] = dice.pickWeighted(lengths);
  const count = dice.between(low, high);
  const exchanges = Array.from({ length: count }, () => drawExchange(dice, split, speaker));
  if (dice.chance(0.08)) exchanges.unshift(greet(dice));
  if (dice.chance(0.08)) exchanges.push(partWays(dice));
  return [
    ...(text === null ? [] : [{ role: "system", content: text } as const]),
    ...exchanges.flatMap(({ user, assistant }) => [
      { role: "user", content: user } as const,
      { role: "assistant", content: assistant } as const,
    ]),
  ];
}

function drawExchange(dice: Dice, split: Split, speaker: Speaker): Exchange {
  const skills = dice.chance(sumShare) ? sumSkills : practisedSkills;
  return practise(dice.pickWeighted(skills).skill, dice, split, speaker);
}

/**
 * Draws from a skill an exchange that belongs to one side of the corpus. A skill with few prompts may have
 * none to hold out, such as "Tell me a story."; its evaluation has to do with those that are trained on.
 */
export function practise(skill: Skill, dice: Dice, split: Split, speaker: Speaker): Exchange {
  const draw = (): Exchange => skill(dice, speaker);
  if (split === "training") return dice.until(draw, ({ user }) => !isHeldOut(user));
  return dice.tryUntil(draw, ({ user }) => isHeldOut(user), 1000) ?? draw();
}
