import path from "node:path";
import { ArgumentError } from "tinker-ts";
import { inParallel } from "../evaluation/index.js";
import { asMessages, textOf, type Message } from "../renderers/index.js";
import { messageCompleter, mixSeeds, samplingPolicy, type MessageCompleter } from "../rl/index.js";
import {
  checkOptionNames,
  chooseRenderer,
  enoughEpochs,
  findContextLength,
  inRunFolder,
  KeptLines,
  pickOptions,
} from "../runs/index.js";
import { distillOptionNames } from "./option-names.js";
import {
  defaultBatchSize,
  train,
  trainOptionNames,
  type TrainOptions,
  type TrainResult,
} from "../supervised/index.js";

/** The file of a run's folder that keeps what the teacher answered, in the form that `train sft` reads. */
export const distilledFile = "distilled.jsonl";

/** The default number of passes over the answers. */
export function promptEpochs(batchesPerEpoch: number): number {
  return Math.max(4, enoughEpochs(batchesPerEpoch));
}

/** Answers conversations in text; any model and any server can. */
export type AnswerMessages = (
  messages: readonly Message[],
  options: { readonly seed: number; readonly signal?: AbortSignal | undefined },
) => Promise<string>;

/** Options of prompt distillation. */
export interface PromptDistillationOptions extends Omit<TrainOptions, "data"> {
  /**
   * The instruction for the teacher: a text, which becomes a system message in front of every query; or a function that
   * returns the teacher's whole prompt for a query.
   */
  readonly instruction: string | ((query: readonly Message[]) => readonly Message[]);
  /** The queries. */
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
   * Selects and edits answers: undefined drops one, a text replaces it.
   * @default all, unchanged
   */
  readonly keep?: ((answer: string, query: readonly Message[]) => string | undefined) | undefined;
  /** The peak learning rate. @default "auto": the rate recommended for the model; 1e-4 for families without one */
  readonly learningRate?: number | "auto" | undefined;
  /** Passes over the answers. @default 4, or as many as give 30 steps */
  readonly numEpochs?: number | undefined;
}

/** The result of prompt distillation. */
export interface PromptDistillationResult extends TrainResult {
  /** Answers that were learned. */
  readonly examples: number;
}

/**
 * Teaches a model to follow an instruction without reading it: a teacher answers queries with the instruction in front, the
 * student learns the answers without it. Answers are stored in the run's folder at once, so a resumed run repeats none.
 */
export async function distillPrompt(
  given: PromptDistillationOptions,
): Promise<PromptDistillationResult> {
  const { queries, samplesPerQuery = 1, keep = (answer) => answer } = given;
  if (queries.length === 0) throw new ArgumentError("queries", "there are none");
  checkOptionNames(given, distillOptionNames.prompt);
  const options = await inRunFolder(given);
  const file = path.join(options.folder, distilledFile);
  const answers = await askTeacher(options, file, samplesPerQuery);
  const conversations = answers.flatMap(({ query, answer }) => {
    const kept = keep(answer, query);
    if (kept === undefined) return [];
    return [{ messages: [...query, { role: "assistant", content: kept }] }];
  });
  if (conversations.length === 0) {
    throw new ArgumentError("keep", `left none of the ${answers.length} answers of the teacher`);
  }
  const { length: examples } = conversations;
  const { batchSize = defaultBatchSize(examples) } = options;
  const result = await train({
    recipeName: "prompt_distillation",
    ...pickOptions(options, trainOptionNames),
    numEpochs: options.numEpochs ?? promptEpochs(Math.floor(examples / batchSize)),
    data: conversations,
  });
  return { ...result, examples };
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
    const prompt = promptOf(query);
    return Array.from({ length: samplesPerQuery }, (_, sample) => ({
      query,
      prompt,
      key: JSON.stringify([prompt, sample]),
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
    await inParallel(missing, concurrency, async ({ query, prompt, key, seed: own }) => {
      signal?.throwIfAborted();
      const answer = await teacher(prompt, { seed: own, signal });
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
