import type { BaseModel, Engine, ModelConfig, PrecisionOptions, Snapshot } from "@tinker-ts/engine";
import { randomDatum, randomIntegers } from "./data.js";
import { heading, line } from "./measure.js";
import { benchModels } from "./models.js";
import { pythonWithTorch, startTorch, type TorchTrainer } from "./torch.js";

/** What models are computed with here. */
export const precisions = {
  f32: { weights: "f32" },
  "int8, one digit": { weights: "int8", activations: "int8" },
  "int8, two digits": { weights: "int8", activations: "int16" },
} as const satisfies Record<string, PrecisionOptions>;

const rank = 32;
const sequences = 4;
const sizes = {
  S: { length: 128, steps: 12, tokens: 64 },
  M: { length: 128, steps: 4, tokens: 12 },
  "0.6B": { length: 256, steps: 2, tokens: 6 },
} as const;

/** A model in one precision, with what was measured of it. */
interface Contender {
  readonly name: string;
  readonly model: BaseModel;
  readonly adapter: Awaited<ReturnType<BaseModel["createAdapter"]>>;
}

/** What something took: time, and the work of the processor. */
interface Taken {
  readonly ms: number;
  readonly cpuMs: number;
}

/**
 * 32 bits and int8 weights side by side, and PyTorch where there is one: steps and tokens in turns, so that
 * what else the machine does falls on all of them, and also as the processor's own time.
 */
export async function benchPrecision(engine: Engine, only?: readonly string[]): Promise<void> {
  const python = pythonWithTorch();
  for (const [name, { length, steps, tokens }] of Object.entries(sizes)) {
    if (only !== undefined && !only.includes(name)) continue;
    const config = benchModels[name as keyof typeof benchModels];
    heading(
      `Precision on ${name}: steps of ${sequences} x ${length} tokens, adapters of rank ${rank}`,
    );
    const contenders = await contendersOn(engine, config);
    const torch = python === undefined ? undefined : await startTorch(python, config, rank);
    await compareSteps(contenders, torch, length, steps);
    torch?.close();
    for (const batch of [1, 8, 32]) await compareDecoding(contenders, batch, tokens);
    for (const contender of contenders) await compareAgreement(contender);
    for (const { model } of contenders) await model.unload();
  }
  if (python === undefined) line("PyTorch", "not found", "set PYTHON to one that has torch");
}

async function contendersOn(engine: Engine, config: ModelConfig): Promise<readonly Contender[]> {
  const contenders: Contender[] = [];
  for (const [name, options] of Object.entries(precisions)) {
    // Drawn in the engine's thread, a tensor at a time: given ones would be there twice.
    const model = await engine.createModel(config, { seed: 1, ...options });
    contenders.push({ name, model, adapter: await model.createAdapter({ rank }) });
  }
  return contenders;
}

async function compareSteps(
  contenders: readonly Contender[],
  torch: TorchTrainer | undefined,
  length: number,
  steps: number,
): Promise<void> {
  const taken = new Map<string, Taken[]>();
  const note = (name: string, one: Taken): void => {
    taken.set(name, [...(taken.get(name) ?? []), one]);
  };
  // The first round makes programs and buffers.
  for (let step = 0; step <= steps; step++) {
    const data = Array.from({ length: sequences }, (_, i) =>
      randomDatum(contenders[0]?.model.vocabSize ?? 0, length, 0, step * sequences + i + 1),
    );
    for (const { name, adapter } of contenders) {
      const one = await timed(async () => {
        await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
        await adapter.optimStep({ learningRate: 1e-5 });
      });
      if (step > 0) note(name, one);
    }
    for (const mode of ["f32", "bf16"] as const) {
      const ms = await torch?.step(mode, sequences, length);
      if (step > 0 && ms !== undefined) note(`PyTorch ${mode}`, { ms, cpuMs: NaN });
    }
  }
  const medians = new Map([...taken].map(([name, all]) => [name, median(all)]));
  const yardstick = medians.get("PyTorch bf16") ?? medians.get("f32");
  const against = medians.has("PyTorch bf16") ? "PyTorch bf16" : "f32";
  for (const [name, { ms, cpuMs }] of medians) {
    const cpu = Number.isNaN(cpuMs) ? "" : `, ${cpuMs.toFixed(0)} ms of processor`;
    const ratio = ((yardstick?.ms ?? NaN) / ms).toFixed(2);
    line(`step ${name}`, `${ms.toFixed(0)} ms${cpu}`, `${ratio} x ${against}`);
  }
}

async function compareDecoding(
  contenders: readonly Contender[],
  batch: number,
  tokens: number,
): Promise<void> {
  const found = new Map<string, Taken[]>();
  for (let round = 0; round < 3; round++) {
    for (const { name, model, adapter } of contenders) {
      const snapshot = await adapter.snapshot();
      const one = await timed(() => sampleOf(model, snapshot, batch, tokens));
      await snapshot.release();
      if (round > 0) found.set(name, [...(found.get(name) ?? []), one]);
    }
  }
  const plain = median(found.get("f32") ?? []).ms;
  for (const [name, all] of found) {
    const { ms, cpuMs } = median(all);
    const figure = `${((batch * tokens * 1000) / ms).toFixed(1)} tokens/s`;
    const cpu = `${(cpuMs / batch / tokens).toFixed(1)} ms of processor a token`;
    line(`decode ${name}, batch ${batch}`, figure, `${(plain / ms).toFixed(2)} x f32, ${cpu}`);
  }
}

function sampleOf(model: BaseModel, adapter: Snapshot, batch: number, tokens: number) {
  return model.sample({
    prompt: [1, 2, 3, 4],
    maxTokens: tokens,
    numSamples: batch,
    adapter,
    seed: 1,
  });
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

async function timed(action: () => Promise<unknown>): Promise<Taken> {
  const [startMs, before] = [performance.now(), process.cpuUsage()];
  await action();
  const { user, system } = process.cpuUsage(before);
  return { ms: performance.now() - startMs, cpuMs: (user + system) / 1000 };
}

function median(all: readonly Taken[]): Taken {
  const middle = (values: readonly number[]): number =>
    values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
  return { ms: middle(all.map(({ ms }) => ms)), cpuMs: middle(all.map(({ cpuMs }) => cpuMs)) };
}
