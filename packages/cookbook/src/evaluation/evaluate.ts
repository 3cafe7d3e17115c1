import { createHash } from "node:crypto";
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { ArgumentError, checkOptions, type SamplingClient } from "tinker-ts";
import { fileNameOf, readJsonLines, type Line } from "tinker-ts/run-log";
import { textOf, type Message, type Renderer } from "../renderers/index.js";
import { answerExample, chooseAnswer, type Attempt } from "./ask.js";
import { inParallel, untilAborted } from "./in-parallel.js";
import { isRight, summarize, toResultLine, type EvalResult } from "./result.js";
import type { EvalExample, EvalTask } from "./task.js";

/** Options of `evaluate`. */
export interface EvaluateOptions {
  readonly task: EvalTask;
  /** The model to evaluate. */
  readonly sampling: SamplingClient;
  readonly renderer: Renderer;
  /** The maximum number of examples. */
  readonly maxExamples?: number | undefined;
  /** The maximum number of examples in flight. @default 64 */
  readonly concurrency?: number | undefined;
  /** Milliseconds until an example counts as failed. @default 300000 */
  readonly timeoutMs?: number | undefined;
  /** The maximum number of tokens of an answer. @default 1024 */
  readonly maxTokens?: number | undefined;
  /** @default 0 */
  readonly temperature?: number | undefined;
  /** The context length of the model; answers are shortened to fit. */
  readonly contextWindow?: number | undefined;
  /** Answers per example; with more than one, the result has pass@k. @default 1 */
  readonly numSamples?: number | undefined;
  /** Random seed for sampling. @default 0 */
  readonly seed?: number | undefined;
  /** The folder for answers; answered examples are not asked again. */
  readonly folder?: string | undefined;
  /** Called after every example. */
  readonly onProgress?: ((progress: EvalProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

const optionNames: Readonly<Record<keyof EvaluateOptions, true>> = {
  task: true,
  sampling: true,
  renderer: true,
  maxExamples: true,
  concurrency: true,
  timeoutMs: true,
  maxTokens: true,
  temperature: true,
  contextWindow: true,
  numSamples: true,
  seed: true,
  folder: true,
  onProgress: true,
  signal: true,
};

/** The progress of an evaluation. */
export interface EvalProgress {
  readonly done: number;
  readonly total: number;
  /** Right answers so far. */
  readonly correct: number;
}

/** An example with its name in files. */
interface NamedExample {
  readonly id: string;
  readonly index: number;
  readonly example: EvalExample;
}

/**
 * Asks a model all examples of a task and grades the answers.
 *
 * - An example that fails or takes too long counts as wrong and as an error; the others continue.
 * - With a folder every answer is stored at once. A second call asks only missing and failed examples.
 */
export async function evaluate(options: EvaluateOptions): Promise<EvalResult> {
  checkOptions(options, [optionNames]);
  for (const name of ["task", "sampling", "renderer"] as const) {
    if (options[name] === undefined) throw new ArgumentError(name, "is missing");
  }
  const { task, numSamples = 1, concurrency = 64, folder, signal, onProgress } = options;
  const { maxExamples = task.examples.length } = options;
  if (task.examples.length === 0) throw new ArgumentError("task", `${task.name} has no examples`);
  const startedAt = performance.now();
  const examples = nameExamples(task.name, task.examples.slice(0, maxExamples));
  const store = folder === undefined ? undefined : new AnswerStore(folder, task.name);
  const known = (await store?.read()) ?? new Map<string, Attempt[]>();
  const attempts = new Map<string, readonly Attempt[]>();
  const progress = { done: 0, correct: 0 };
  const note = (id: string, made: readonly Attempt[]): void => {
    attempts.set(id, made);
    progress.done++;
    progress.correct += made.some(isRight) ? 1 : 0;
    onProgress?.({ ...progress, total: examples.length });
  };
  await inParallel(examples, concurrency, async ({ id, index, example }) => {
    signal?.throwIfAborted();
    const before = known.get(id)?.filter(({ error }) => error === undefined) ?? [];
    if (before.length >= numSamples) return note(id, before.slice(0, numSamples));
    const made = await attempt(example, index, options);
    await store?.add({ id, index, task: task.name, example }, made);
    note(id, made);
  });
  const ordered = examples.map(({ id }) => attempts.get(id)!);
  const result = summarize(task.name, ordered, (performance.now() - startedAt) / 1000);
  await store?.finish(result);
  return result;
}

async function attempt(
  example: EvalExample,
  index: number,
  options: EvaluateOptions,
): Promise<readonly Attempt[]> {
  const { task, timeoutMs = 300_000, signal, numSamples = 1 } = options;
  const late = AbortSignal.timeout(timeoutMs);
  const bound = signal ? AbortSignal.any([signal, late]) : late;
  const startedAt = performance.now();
  try {
    const asking =
      task.grader === "choice"
        ? chooseAnswer(example, options, bound)
        : answerExample(example, index, options, task.grader, bound);
    return await untilAborted(bound, asking);
  } catch (cause) {
    signal?.throwIfAborted();
    const error = late.aborted ? `took longer than ${timeoutMs} ms` : String(cause);
    const seconds = (performance.now() - startedAt) / 1000;
    const failed: Attempt = { turns: [], reward: 0, metrics: {}, logs: {}, error, seconds };
    return Array.from({ length: numSamples }, () => failed);
  }
}

/** Equal questions get numbers, so that every example has a unique name. */
function nameExamples(task: string, examples: readonly EvalExample[]): NamedExample[] {
  const seen = new Map<string, number>();
  return examples.map((example, index) => {
    const hash = createHash("md5").update(questionOf(example.messages)).digest("hex").slice(0, 12);
    const name = example.id ?? `${task}_${hash}`;
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return { id: count === 1 ? name : `${name}-${count}`, index, example };
  });
}

function questionOf(messages: readonly Message[]): string {
  return textOf(messages.at(-1) ?? { content: "" });
}

/** The answers of a task in a folder: `NAME/trajectories.jsonl`, and its result beside. */
class AnswerStore {
  readonly #folder: string;
  readonly #root: string;
  #last: Promise<void> = Promise.resolve();

  constructor(root: string, task: string) {
    this.#root = root;
    this.#folder = path.join(root, fileNameOf(task));
  }

  async read(): Promise<Map<string, Attempt[]>> {
    await mkdir(this.#folder, { recursive: true });
    const { lines } = await readJsonLines(this.#file);
    const known = new Map<string, Attempt[]>();
    for (const line of lines) {
      const { example_id: id } = line;
      if (typeof id !== "string") continue;
      known.set(id, [...(known.get(id) ?? []), toAttempt(line)]);
    }
    return known;
  }

  async add(
    { id, index, task }: NamedExample & { readonly task: string },
    attempts: readonly Attempt[],
  ): Promise<void> {
    const lines = attempts.map((made, sample) =>
      JSON.stringify({
        idx: index,
        benchmark: task,
        example_id: id,
        sample,
        turns: made.turns.map(({ role, content, tokenCount }) => ({
          role,
          content,
          token_count: tokenCount,
        })),
        reward: made.reward,
        metrics: made.metrics,
        logs: made.logs,
        error: made.error ?? null,
        time_seconds: made.seconds,
      }),
    );
    // One after the other, so that lines stay whole; a line that a crash had cut is ended by a newline.
    this.#last = this.#last.then(() => appendFile(this.#file, `\n${lines.join("\n")}\n`));
    await this.#last;
  }

  async finish(result: EvalResult): Promise<void> {
    const text = JSON.stringify(toResultLine(result), null, 2);
    await writeFile(path.join(this.#folder, "result.json"), `${text}\n`);
    await writeFile(path.join(this.#root, "summary.json"), `${text}\n`);
  }

  get #file(): string {
    return path.join(this.#folder, "trajectories.jsonl");
  }
}

function toAttempt(line: Line): Attempt {
  const { turns, reward, metrics, logs, error, time_seconds: seconds } = line;
  return {
    turns: ((turns ?? []) as Line[]).map(({ role, content, token_count: tokenCount }) => ({
      role: role as string,
      content: content as string,
      tokenCount: Number(tokenCount),
    })),
    reward: Number(reward),
    metrics: (metrics ?? {}) as Attempt["metrics"],
    logs: (logs ?? {}) as Attempt["logs"],
    error: typeof error === "string" ? error : undefined,
    seconds: Number(seconds),
  };
}
