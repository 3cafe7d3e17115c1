import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { BaseModel, Engine, PrecisionOptions } from "@tinker-ts/engine";
import { randomDatum, randomIntegers } from "./data.js";
import type { LineProcess } from "./line-process.js";
import { llamaEntry, startLlama } from "./llama.js";
import { heading, line } from "./measure.js";
import { writeModelFolder } from "./model-folder.js";
import { benchModels, type BenchModelName } from "./models.js";
import { tokenMs } from "./token-time.js";
import { pythonWithTorch, startTorch } from "./torch.js";

/** What models are computed with here. */
export const precisions = {
  f32: { weights: "f32" },
  "int8, one digit": { weights: "int8", activations: "int8" },
  "int8, 16 bits": { weights: "int8", activations: "int16" },
} as const satisfies Record<string, PrecisionOptions>;

const rank = 32;
const sequences = 4;
/** Tokens of a sequence, rounds of steps at most, tokens that are sampled, rounds of that at most. */
const sizes = {
  S: { length: 128, steps: 15, tokens: 64, samples: 12 },
  M: { length: 128, steps: 5, tokens: 16, samples: 3 },
  "0.6B": { length: 256, steps: 2, tokens: 8, samples: 2 },
  "Qwen3.5-0.8B": { length: 256, steps: 2, tokens: 8, samples: 2 },
} as const;

/** Rounds end after this long, when there has been one. */
const roundsMs = 60_000;

/** A model in one precision. */
interface Contender {
  readonly name: string;
  readonly model: BaseModel;
  readonly adapter: Awaited<ReturnType<BaseModel["createAdapter"]>>;
}

/** What is measured of precisions. */
export type PrecisionPart = "steps" | "decoding" | "agreement";

/**
 * 32 bits and int8 weights side by side, and beside PyTorch and llama.cpp where there are such: steps and tokens in
 * turns, so that what else the machine does falls on all of them.
 */
export async function benchPrecision(
  engine: Engine,
  parts: readonly PrecisionPart[],
  names: readonly BenchModelName[],
): Promise<void> {
  const [python, llama] = [pythonWithTorch(), llamaEntry()];
  for (const name of names) {
    const { length } = sizes[name];
    heading(`Precision on ${name}: ${sequences} x ${length} tokens, adapters of rank ${rank}`);
    const contenders = await contendersOn(engine, name);
    const config = benchModels[name];
    const torch = python === undefined ? undefined : await startTorch(python, config, rank);
    if (parts.includes("agreement")) {
      for (const contender of contenders) await compareAgreement(contender);
    }
    if (parts.includes("steps")) await compareSteps(contenders, torch, name);
    if (parts.includes("decoding")) {
      const other = llama === undefined ? undefined : await startLlama(llama, config);
      for (const batch of [1, 8, 32]) await compareDecoding(contenders, torch, other, name, batch);
      other?.close();
    }
    torch?.close();
    for (const { model } of contenders) await model.unload();
  }
  if (python === undefined) line("PyTorch", "not found", "set PYTHON to one that has torch");
  if (llama === undefined) line("llama.cpp", "not found", "set LLAMA to where node-llama-cpp is");
}

async function contendersOn(engine: Engine, name: BenchModelName): Promise<readonly Contender[]> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tinker-ts-bench-"));
  try {
    await writeModelFolder(folder, benchModels[name]);
    const contenders: Contender[] = [];
    for (const [precision, options] of Object.entries(precisions)) {
      const model = await engine.loadModel(folder, options);
      contenders.push({ name: precision, model, adapter: await model.createAdapter({ rank }) });
    }
    return contenders;
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function compareSteps(
  contenders: readonly Contender[],
  torch: LineProcess | undefined,
  name: BenchModelName,
): Promise<void> {
  const { length, steps } = sizes[name];
  const turns = new Turns(["PyTorch bf16", "PyTorch f32", "f32"]);
  // The first round makes programs and buffers, for which few tokens will do.
  for (let step = 0; step <= steps && !turns.areLong; step++) {
    const tokens = step === 0 ? Math.min(length, 32) : length;
    const data = Array.from({ length: sequences }, (_, i) =>
      randomDatum(contenders[0]?.model.vocabSize ?? 0, tokens, 0, step * sequences + i + 1),
    );
    for (const { name: contender, adapter } of contenders) {
      const startMs = performance.now();
      await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
      await adapter.optimStep({ learningRate: 1e-5 });
      turns.note(contender, performance.now() - startMs);
    }
    for (const precision of ["f32", "bf16"]) {
      const ms = await torch?.ask(`step ${precision} ${sequences}x${tokens}`);
      if (ms !== undefined) turns.note(`PyTorch ${precision}`, ms);
    }
    if (step === 0) turns.forget();
  }
  turns.print(
    (contender) => `step ${contender}`,
    (ms) => `${ms.toFixed(0)} ms`,
  );
}

async function compareDecoding(
  contenders: readonly Contender[],
  torch: LineProcess | undefined,
  llama: LineProcess | undefined,
  name: BenchModelName,
  batch: number,
): Promise<void> {
  const { tokens, samples } = sizes[name];
  const turns = new Turns(["llama.cpp q8_0", "PyTorch f32", "f32"]);
  for (let round = 0; round <= samples && !turns.areLong; round++) {
    for (const { name: contender, model, adapter } of contenders) {
      const snapshot = await adapter.snapshot();
      const request = { prompt: [1, 2, 3, 4], numSamples: batch, adapter: snapshot, seed: 1 };
      turns.note(contender, await tokenMs(model, request, tokens));
      await snapshot.release();
    }
    for (const precision of ["f32", "bf16"]) {
      const ms = await torch?.ask(`decode ${precision} ${batch}x${tokens}`);
      if (ms !== undefined) turns.note(`PyTorch ${precision}`, ms);
    }
    const ms = await llama?.ask(`${batch}x${tokens}`);
    if (ms !== undefined) turns.note("llama.cpp q8_0", ms);
    if (round === 0) turns.forget();
  }
  turns.print(
    (contender) => `decode ${contender}, batch ${batch}`,
    (ms) => `${((batch * 1000) / ms).toFixed(1)} tokens/s`,
  );
}

/** How far sampler and trainer are apart on the same tokens. */
async function compareAgreement({ name, model, adapter }: Contender): Promise<void> {
  const random = randomIntegers(7);
  const prompt = Array.from({ length: 48 }, () => random(model.vocabSize));
  const snapshot = await adapter.snapshot();
  const { promptLogprobs } = await model.sample({
    prompt,
    maxTokens: 1,
    adapter: snapshot,
    promptLogprobs: true,
  });
  const inputs = { target_tokens: { data: prompt.slice(1), shape: [prompt.length - 1] } };
  const datum = { tokens: prompt.slice(0, -1), inputs };
  const { outputs } = await adapter.forward([datum], { lossFn: "cross_entropy" });
  const differences = [...(outputs[0]?.logprobs ?? [])]
    .map((value, i) => Math.abs(value - (promptLogprobs?.[i + 1] ?? NaN)))
    .toSorted((a, b) => a - b);
  const figures = [differences[differences.length >> 1], differences.at(-1)];
  const text = figures.map((value) => (value ?? NaN).toExponential(1)).join(", ");
  line(`trainer and sampler ${name}: median, largest`, text);
}

/** What contenders took, turn by turn; against the yardsticks that are there. */
class Turns {
  readonly #yardsticks: readonly string[];
  readonly #taken = new Map<string, number[]>();
  #startMs = performance.now();

  constructor(yardsticks: readonly string[]) {
    this.#yardsticks = yardsticks;
  }

  note(contender: string, ms: number): void {
    this.#taken.set(contender, [...(this.#taken.get(contender) ?? []), ms]);
  }

  /** Forgets the first round, which makes programs and buffers. */
  forget(): void {
    this.#taken.clear();
    this.#startMs = performance.now();
  }

  /** Whether there has been enough. */
  get areLong(): boolean {
    return this.#taken.size > 0 && performance.now() - this.#startMs > roundsMs;
  }

  print(label: (contender: string) => string, figure: (ms: number) => string): void {
    const medians = new Map([...this.#taken].map(([name, all]) => [name, median(all)]));
    const present = this.#yardsticks.filter((name) => medians.has(name));
    for (const [name, ms] of medians) {
      const ratios = present.map(
        (one) => `${((medians.get(one) ?? NaN) / ms).toFixed(2)} x ${one}`,
      );
      line(label(name), figure(ms), ratios.join(", "));
    }
  }
}

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[all.length >> 1] ?? NaN;
}
