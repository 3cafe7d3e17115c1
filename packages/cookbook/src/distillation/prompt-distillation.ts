import path from "node:path";
import { ArgumentError } from "tinker-ts";
import { inParallel } from "../evaluation/index.js";
import { asMessages, textOf, type Message } from "../renderers/index.js";
import { messageCompleter, mixSeeds, samplingPolicy, type MessageCompleter } from "../rl/index.js";
import { chooseRenderer, findContextLength, KeptLines } from "../runs/index.js";
import { train, type TrainOptions, type TrainResult } from "../supervised/index.js";

/** The file of a run's folder that keeps what the teacher answered, in the form that `train sft` reads. */
export const distilledFile = "distilled.jsonl";

/** What prompt distillation takes when nothing is said. */
export const promptDefaults = { learningRate: 1e-4, numEpochs: 4 } as const;

/** Answers conversations in text; any model and any server can. */
export type AnswerMessages = (
  messages: readonly Message[],
  options: { readonly seed: number; readonly signal?: AbortSignal | undefined },
) => Promise<string>;

/** How an instruction is made part of a model. */
export interface PromptDistillationOptions extends Omit<TrainOptions, "data"> {
  /**
   * What the teacher is told and the student is not: a text, which becomes a system message in front of every
   * query; or everything that the teacher reads for a query.
   */
  readonly instruction: string | ((query: readonly Message[]) => readonly Message[]);
  /** What is asked. */
  readonly queries: readonly (string | readonly Message[])[];
  /** Who answers with the instruction in front. @default the model itself, as it is */
  readonly teacher?: AnswerMessages | undefined;
  /** Answers per query. @default 1 */
  readonly samplesPerQuery?: number | undefined;
  /** Of the model itself as a teacher. @default 0.15 */
  readonly temperature?: number | undefined;
  /** Most tokens of an answer. @default 1000 */
  readonly maxTokens?: number | undefined;
  /** Queries that are asked at once. @default 64 */
  readonly concurrency?: number | undefined;
  /**
   * Which answers are learned, and as what: undefined leaves one out, a text replaces it.
   * @default all, as they are
   */
  readonly keep?: ((answer: string, query: readonly Message[]) => string | undefined) | undefined;
  /** The highest rate; `auto` takes the one recommended for the model. @default 1e-4 */
  readonly learningRate?: number | "auto" | undefined;
  /** How often the answers are gone through. @default 4 */
  readonly numEpochs?: number | undefined;
}

/** How a run ended, and what it learned from. */
export interface PromptDistillationResult extends TrainResult {
  /** Answers that were learned. */
  readonly examples: number;
}

/**
 * Teaches a model to behave as if it had read an instruction: a teacher answers queries with the instruction in
 * front, the student learns the answers without it. Answers are kept in the run's folder as they come, so a run
 * that goes on asks for none twice.
 */
export async function distillPrompt(
  options: PromptDistillationOptions,
): Promise<PromptDistillationResult> {
  const { queries, folder, samplesPerQuery = 1, keep = (answer) => answer } = options;
  if (queries.length === 0) throw new ArgumentError("queries", "there are none");
  const answers = await askTeacher(options, path.join(folder, distilledFile), samplesPerQuery);
  const conversations = answers.flatMap(({ query, answer }) => {
    const kept = keep(answer, query);
    if (kept === undefined) return [];
    return [{ messages: [...query, { role: "assistant", content: kept }] }];
  });
  if (conversations.length === 0) {
    throw new ArgumentError("keep", `left none of the ${answers.length} answers of the teacher`);
  }
  const result = await train({
    recipeName: "prompt_distillation",
    ...promptDefaults,
    ...options,
    data: conversations,
  });
  return { ...result, examples: conversations.length };
}

interface Answered {
  readonly query: readonly Message[];
  readonly answer: string;
}

async function askTeacher(
  options: PromptDistillationOptions,
  file: string,
  samplesPerQuery: number,
): Promise<readonly Answered[]> {
  const { queries, instruction, seed = 0, concurrency = 64, signal } = options;
  const promptOf =
    typeof instruction === "function"
      ? instruction
      : (query: readonly Message[]) => [{ role: "system", content: instruction }, ...query];
  const asked = queries.flatMap((given, index) => {
    const query = asMessages(given);
    const told = promptOf(query);
    return Array.from({ length: samplesPerQuery }, (_, sample) => ({
      query,
      told,
      key: JSON.stringify([told, sample]),
      seed: mixSeeds(seed, index, sample),
    }));
  });
  const kept = await KeptLines.open(file);
  const known = new Map(
    kept.lines
      .filter(({ key, answer }) => typeof key === "string" && typeof answer === "string")
      .map(({ key, answer }) => [key as string, answer as string]),
  );
  const missing = asked.filter(({ key }) => !known.has(key));
  if (missing.length > 0) {
    const teacher = options.teacher ?? (await modelItself(options));
    await inParallel(missing, concurrency, async ({ query, told, key, seed: own }) => {
      signal?.throwIfAborted();
      const answer = await teacher(told, { seed: own, signal });
      const messages = [...query, { role: "assistant", content: answer }];
      await kept.append({ messages, key, answer });
      known.set(key, answer);
    });
  }
  return asked.map(({ query, key }) => ({ query, answer: known.get(key)! }));
}

async function modelItself(options: PromptDistillationOptions): Promise<AnswerMessages> {
  const { service, model, signal, temperature = 0.15, maxTokens = 1000 } = options;
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await sampling.getTokenizer({ signal });
  const renderer = await chooseRenderer({ ...options, tokenizer });
  const contextWindow = await findContextLength(options);
  const complete: MessageCompleter = messageCompleter(
    samplingPolicy(sampling, { maxTokens, temperature, contextWindow }),
    { renderer },
  );
  return async (messages, how) => textOf((await complete(messages, how)).message).trim();
}
