import type { Dice } from "./dice.js";
import { Scene } from "./scene.js";

/** A sentence that answers a question. */
export interface ToldFact {
  readonly say: string;
  readonly ask: string;
  readonly answer: string;
}

/** One step of a story: a sentence, a sentence that answers a question, or one of several steps. */
export type Step = string | ToldFact | { readonly oneOf: readonly Step[] };

/** A kind of story, as templates. */
export interface Story {
  /** What it is about, as in "Tell me a story about ...". */
  readonly topic: string;
  readonly steps: readonly Step[];
}

/** A story that has been told; what is said about it afterwards is said within its scene. */
export interface Telling {
  readonly story: Story;
  readonly scene: Scene;
  readonly text: string;
  /** Facts that the text tells. */
  readonly told: readonly ToldFact[];
  /** Questions that fit the text, but that it does not answer. */
  readonly open: readonly string[];
}

/** A step that is often left out. */
export function maybe(step: Step): Step {
  return { oneOf: [step, ""] };
}

/** Questions that no story answers. */
const neverTold = [
  "How old is {hero}?",
  "How tall is {hero}?",
  "What is the name of {hero}'s dog?",
  "What colour is {hero}'s house?",
  "What did {hero} eat for breakfast?",
  "Who is {hero}'s teacher?",
  "What song does {hero} like?",
  "Where was {hero} born?",
];

/** Tells a story: makes its choices and notes which questions the result answers. */
export function tell(story: Story, dice: Dice): Telling {
  const scene = new Scene(dice);
  const sentences: string[] = [];
  const told: ToldFact[] = [];
  const left: ToldFact[] = [];
  for (const step of story.steps) {
    const chosen = choose(step, dice, left);
    if (chosen === "") continue;
    if (typeof chosen !== "string") told.push(chosen);
    sentences.push(scene.say(typeof chosen === "string" ? chosen : chosen.say));
  }
  const answered = new Set(told.map(({ ask }) => ask));
  const open = [...left.map(({ ask }) => ask).filter((ask) => !answered.has(ask)), ...neverTold];
  return { story, scene, text: sentences.join(" "), told, open };
}

function choose(step: Step, dice: Dice, left: ToldFact[]): string | ToldFact {
  if (typeof step === "string" || "say" in step) return step;
  const chosen = dice.pick(step.oneOf);
  for (const other of step.oneOf) {
    if (other !== chosen && typeof other === "object" && "say" in other) left.push(other);
  }
  return choose(chosen, dice, left);
}
