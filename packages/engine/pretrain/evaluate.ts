import { Engine, type BaseModel } from "@tinker-ts/engine";
import { loadTokenizer, type Tokenizer } from "@tinker-ts/hub";
import { makeBatch } from "./batches.js";
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

const maxAnswerTokens = 320;
const allSkills = [...practisedSkills, ...sumSkills].map(({ value }) => value);

/** Evaluates the model of a folder on the held-out side of the corpus. */
export async function evaluate(folder: string, options: EvaluateOptions = {}): Promise<Evaluation> {
  const { lossTokens = 60_000, promptsPerSkill = 30 } = options;
  await using engine = await Engine.create();
  const model = await engine.loadModel(folder);
  const tokenizer = await loadTokenizer(folder);
  const speaker = new Speaker(model, tokenizer);
  const { loss, entropy } = await heldOutLoss(model, tokenizer, lossTokens);
  const graded = allSkills.filter((skill) => skill.graded);
  const skills = new Map<string, number>();
  for (const skill of graded) {
    skills.set(skill.name, await speaker.rightAnswers(skill, promptsPerSkill));
  }
  return { loss, entropy, endedTurns: await speaker.endedTurns(10 * promptsPerSkill), skills };
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
  const batch = makeBatch(tokenizer, "evaluation", 0, tokens, model.contextLength);
  const weights = await model.createFullTuning();
  const { metrics } = await weights.forward(batch.data, { lossFn: "cross_entropy" });
  await weights.release();
  return { loss: metrics["loss:sum"] ?? NaN, entropy: batch.nats / batch.tokens };
}

/** Asks a model and compares its answers. */
class Speaker {
  readonly #model: BaseModel;
  readonly #tokenizer: Tokenizer;

  constructor(model: BaseModel, tokenizer: Tokenizer) {
    this.#model = model;
    this.#tokenizer = tokenizer;
  }

  async rightAnswers(skill: PractisedSkill, count: number): Promise<number> {
    const right = await this.#askMany(count, (dice) => {
      const { user, assistant } = practise(skill.skill, dice, "evaluation", { careful: true });
      return async () => (await this.#answer(user, 0)) === assistant + marks.turnEnd;
    });
    return right / count;
  }

  async endedTurns(count: number): Promise<number> {
    const ended = await this.#askMany(count, (dice) => {
      const { skill } = dice.pick(allSkills);
      const { user } = practise(skill, dice, "evaluation", { careful: true });
      return async () => (await this.#answer(user, 0.7)).endsWith(marks.turnEnd);
    });
    return ended / count;
  }

  async #askMany(count: number, prepare: (dice: Dice) => () => Promise<boolean>): Promise<number> {
    const asked = Array.from({ length: count }, (_, number) => prepare(new Dice(3, number))());
    return (await Promise.all(asked)).filter(Boolean).length;
  }

  async #answer(user: string, temperature: number): Promise<string> {
    const text = await this.#tokenizer.renderChat([{ role: "user", content: user }], {
      addGenerationPrompt: true,
    });
    const prompt = this.#tokenizer.encode(text, { addSpecialTokens: false });
    const { samples } = await this.#model.sample({
      prompt,
      maxTokens: maxAnswerTokens,
      temperature,
      seed: prompt.length,
      stopTokens: this.#model.config.eosTokenIds,
    });
    return this.#tokenizer.decode(samples[0]?.tokens ?? []);
  }
}
