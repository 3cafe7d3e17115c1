import { Engine, type BaseModel } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import { makeBatch } from "./batches.js";
import { Conversation } from "./conversation.js";
import { marks } from "./corpus/chat.js";
import { Dice } from "./corpus/dice.js";
import { practise } from "./corpus/documents.js";
import { practisedSkills, sumSkills, type PractisedSkill } from "./corpus/skills/index.js";

/** What a model can do on prompts that it has never seen. */
export interface Evaluation {
  /** Nats per token on held-out documents, and the least that can be lost on them. */
  readonly loss: number;
  readonly entropy: number;
  /** Of answers drawn at temperature 0.7, the part that ends its turn. */
  readonly endedTurns: number;
  /** Of greedy answers, the part that is right, by skill. */
  readonly skills: ReadonlyMap<string, number>;
}

/** How much is tried. */
export interface EvaluateOptions {
  /** @default 60,000 */
  readonly lossTokens?: number;
  /** @default 30 */
  readonly promptsPerSkill?: number;
}

const allSkills = [...practisedSkills, ...sumSkills].map(({ value }) => value);

/** Evaluates the model of a folder on the held-out side of the corpus. */
export async function evaluate(folder: string, options: EvaluateOptions = {}): Promise<Evaluation> {
  await using engine = await Engine.create();
  return await evaluateModel(await engine.loadModel(folder), options);
}

/** The same for a model that is loaded. */
export async function evaluateModel(
  model: BaseModel,
  { lossTokens = 60_000, promptsPerSkill = 30 }: EvaluateOptions = {},
): Promise<Evaluation> {
  const conversation = await Conversation.with(model);
  const { loss, entropy } = await heldOutLoss(model, conversation.tokenizer, lossTokens);
  const graded = allSkills.filter((skill) => skill.graded);
  const skills = new Map<string, number>();
  for (const skill of graded) {
    skills.set(skill.name, await rightAnswers(conversation, skill, promptsPerSkill));
  }
  return {
    loss,
    entropy,
    endedTurns: await shareOfEndedTurns(conversation, 10 * promptsPerSkill),
    skills,
  };
}

/** Writes an evaluation for people. */
export function printEvaluation({ loss, entropy, endedTurns, skills }: Evaluation): void {
  const percent = (part: number) => `${(100 * part).toFixed(0)} %`.padStart(5);
  console.log(
    `held-out loss ${loss.toFixed(4)} nats per token (least ${entropy.toFixed(4)}), ` +
      `perplexity ${Math.exp(loss).toFixed(3)} (least ${Math.exp(entropy).toFixed(3)})`,
  );
  console.log(`${percent(endedTurns)} of answers at temperature 0.7 end their turn`);
  console.log("right answers to held-out prompts, greedy:");
  for (const [name, right] of skills) console.log(`${percent(right)} ${name}`);
}

async function heldOutLoss(
  model: BaseModel,
  tokenizer: Tokenizer,
  tokens: number,
): Promise<{ loss: number; entropy: number }> {
  const batch = makeBatch(tokenizer, "evaluation", 0, {
    batchTokens: tokens,
    contextLength: model.contextLength,
    weights: "all",
  });
  const weights = await model.createFullTuning();
  const { metrics } = await weights.forward(batch.data, { lossFn: "cross_entropy" });
  await weights.release();
  return { loss: metrics["loss:sum"] ?? NaN, entropy: batch.nats / batch.tokens };
}

/** Of greedy answers to so many prompts of a skill, the part that is right. */
async function rightAnswers(
  conversation: Conversation,
  { skill }: PractisedSkill,
  count: number,
): Promise<number> {
  return share(count, async (dice) => {
    const { user, assistant } = practise(skill, dice, "evaluation", { careful: true });
    const [sample] = await conversation.ask(user);
    return conversation.tokenizer.decode(sample?.tokens ?? []) === assistant + marks.turnEnd;
  });
}

/** Of answers to so many prompts of all skills, the part that ends its turn. */
async function shareOfEndedTurns(conversation: Conversation, count: number): Promise<number> {
  return share(count, async (dice, number) => {
    const { skill } = dice.pick(allSkills);
    const { user } = practise(skill, dice, "evaluation", { careful: true });
    const [sample] = await conversation.ask(user, { temperature: 0.7, seed: number });
    return conversation.tokenizer.decode(sample?.tokens ?? []).endsWith(marks.turnEnd);
  });
}

async function share(
  count: number,
  attempt: (dice: Dice, number: number) => Promise<boolean>,
): Promise<number> {
  const attempts = Array.from({ length: count }, (_, number) =>
    attempt(new Dice(3, number), number),
  );
  return (await Promise.all(attempts)).filter(Boolean).length / count;
}
