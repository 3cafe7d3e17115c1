import type { NamedTensors, WeightSource } from "@tinker-ts/hub/weights";
import { EngineError } from "../errors.js";
import { processor, type Device } from "../execution/device.js";
import { attentionBlocks, gpuDevice } from "./device.js";
import { carriesWebGpu } from "../execution/onnxruntime.js";
import { Program, type ProgramOptions } from "../execution/program.js";
import { compileGraph } from "../graph/compile.js";
import { Graph } from "../graph/graph.js";
import { initialWeights } from "../model/initial-weights.js";
import type { ModelConfig } from "../model/model-config.js";
import { layerSitesOf } from "../model/sites.js";
import { checkSampleOptions } from "../sample/request.js";
import type { Datum } from "../train/datum.js";
import { at } from "../util/arrays.js";
import { FairTurns } from "../util/turns.js";
import { RandomStream } from "../util/random.js";
import { LoadedModel } from "../runtime/loaded-model.js";
import { planMemory } from "../runtime/memory-plan.js";
import { TrainedParameters } from "../runtime/trained-parameters.js";

/** A compared part and its largest difference. */
export interface CheckedPart {
  readonly name: string;
  /** The largest difference, relative to the largest value of its part. */
  readonly difference: number;
  /** Time on the device. */
  readonly deviceMs: number;
  /** Time on the processor. */
  readonly processorMs: number;
}

/** Comparison of a device with the processor. */
export interface DeviceCheck {
  readonly parts: readonly CheckedPart[];
  /** New tokens of a prompt that it reads at once; null if any number is read correctly. */
  readonly promptBlock: number | null;
}

/** Differences above it are refused. Rounding stays below a hundredth of it. */
export const largestDifference = 1e-4;

/** Small, but above the sizes from which kernels change: 32 new tokens, widths of several tiles. */
export const checkedConfig: ModelConfig = {
  architecture: "qwen3",
  vocabSize: 96,
  hiddenSize: 64,
  intermediateSize: 96,
  layers: 1,
  heads: 4,
  kvHeads: 2,
  headDim: 16,
  normEpsilon: 1e-6,
  rope: { theta: 10_000, scaling: null },
  contextLength: 128,
  tiedEmbeddings: false,
  qkvBias: false,
  outputBias: false,
  mlpBias: false,
  qkNorm: true,
  bosTokenId: null,
  eosTokenIds: [],
};
const config = checkedConfig;
const [rank, lengths, promptTokens, sampledTokens] = [8, [40, 24], 40, 4];

/**
 * Trains and samples a small model on a device and on the processor, and compares the loss, every gradient,
 * a step of the optimizer, and the log-probabilities of a long prompt and its samples. Throws when a part differs:
 * operators of a device have been seen to give wrong numbers without an error.
 */
export async function checkDevice(options: ProgramOptions): Promise<DeviceCheck> {
  const expected: Measured[] = [];
  for await (const part of measure({ ...options, device: processor })) expected.push(part);
  const parts: CheckedPart[] = [];
  const { device = processor } = options;
  for await (const actual of measure(options)) {
    const part = compare(at(expected, parts.length), actual);
    if (part.difference > largestDifference) throw differs(part, device);
    parts.push(part);
  }
  return { parts, promptBlock: device.mostNewTokens === Infinity ? null : device.mostNewTokens };
}

/** Checks the GPU in its fastest mode, with long prompt blocks; if that differs, with all workarounds. */
export async function checkGpu(
  options: ProgramOptions,
): Promise<{ readonly device: Device; readonly check: DeviceCheck }> {
  const fastest = gpuDevice([attentionBlocks.name]);
  try {
    return { device: fastest, check: await checkDevice({ ...options, device: fastest }) };
  } catch (error) {
    if (!(error instanceof EngineError) || error.code !== "device_differs") throw error;
    const device = gpuDevice();
    return { device, check: await checkDevice({ ...options, device }) };
  }
}

/**
 * A no-op program for a device: it shows that the device can be used at all, and compiled kernels of
 * other programs are kept as long as it is open.
 */
export async function openDevice(options: ProgramOptions): Promise<Program> {
  if (options.device?.name === "gpu" && !carriesWebGpu()) throw notCarried();
  const graph = new Graph();
  const value = graph.input("value", [1]);
  return Program.create(compileGraph(graph, { outputs: { copy: value } }), options);
}

/** Numbers of one part, in pieces that are compared one by one. */
interface Measured {
  readonly name: string;
  readonly ms: number;
  readonly values: NamedTensors;
}

async function* measure(programs: ProgramOptions): AsyncGenerator<Measured> {
  const memory = planMemory(2 ** 30, 2 ** 20, 0);
  const { signal } = new AbortController();
  const turns = new FairTurns();
  const weights = strongWeights(initialWeights(config, 1));
  const source = { weights, folder: null, isLasting: false };
  const model = await LoadedModel.load(config, source, programs, memory, turns, { signal });
  try {
    const sites = [...layerSitesOf(config), "head"] as const;
    const trained = TrainedParameters.adapter(model, { rank, alpha: 2 * rank, seed: 1, sites });
    fillFactors(trained);
    const time = async (name: string, work: () => Promise<NamedTensors>): Promise<Measured> => {
      const startMs = performance.now();
      const values = await work();
      return { name, values, ms: performance.now() - startMs };
    };
    yield await time("loss", async () => {
      const request = { parameters: 0, data: data(), lossFn: "cross_entropy", lossFnConfig: {} };
      const context = { pause: async () => {} };
      const result = await trained.pass({ ...request, backward: true }, context);
      return named({
        "the sum": [result.metrics["loss:sum"] ?? NaN],
        ...Object.fromEntries(result.outputs.map((one, i) => [`sequence ${i}`, one.logprobs])),
      });
    });
    yield await time("gradients", async () => trained.state.exportGradient());
    yield await time("optimizer step", async () => {
      // With a tiny epsilon the first step would be the sign of each gradient, also of those that are rounding.
      await trained.step({ learningRate: 1e-2, eps: 1e-2 });
      return trained.state.export(false).tensors;
    });
    yield await time("sampled logprobs", async () => {
      const options = { prompt: tokens(promptTokens, 3), maxTokens: sampledTokens, temperature: 0 };
      const { promptLogprobs, samples } = await model.sampler.sample({
        options: checkSampleOptions(config, { ...options, promptLogprobs: true }),
        adapter: trained.freeze("check"),
        text: undefined,
        constraint: undefined,
        signal,
        onTokens: undefined,
      });
      const [sample] = samples;
      return named({
        "the prompt": Array.from(promptLogprobs ?? [])
          .slice(1)
          .map(Number),
        "the sampled tokens": Array.from(sample?.tokens ?? []),
        "the samples": Array.from(sample?.logprobs ?? []),
      });
    });
  } finally {
    await model.release();
  }
}

/** Weights far from zero: with the small ones of a new model, errors would not show. */
function strongWeights(source: WeightSource): WeightSource {
  return {
    ...source,
    read: async (name) => {
      const values = await source.read(name);
      return name.endsWith("norm.weight") ? values : values.map((value) => value * 8);
    },
  };
}

/** New second factors are zero, and so would be half of the gradients. */
function fillFactors({ state }: TrainedParameters): void {
  const random = new RandomStream(7);
  const { tensors } = state.export(false);
  for (const { data: values } of tensors.values()) {
    for (let i = 0; i < values.length; i++) values[i] = 0.1 * random.nextNormal();
  }
  state.import({ tensors }, false);
}

function data(): readonly Datum[] {
  return lengths.map((length, index) => {
    const [targets, weights] = [tokens(length, 10 + index), new Float32Array(length).fill(1)];
    const shape = [length];
    // The first targets have no gradient, so that rows are picked and put back.
    weights.fill(0, 0, 4);
    return {
      tokens: tokens(length, index),
      inputs: { target_tokens: { data: targets, shape }, weights: { data: weights, shape } },
    };
  });
}

function tokens(length: number, seed: number): number[] {
  const random = new RandomStream(seed);
  return Array.from({ length }, () => Math.floor(random.next() * config.vocabSize));
}

function named(values: Readonly<Record<string, ArrayLike<number>>>): NamedTensors {
  return new Map(
    Object.entries(values).map(([name, list]) => {
      const array = Float32Array.from(list);
      return [name, { data: array, shape: [array.length] }];
    }),
  );
}

function compare(expected: Measured, actual: Measured): CheckedPart {
  const differences = [...expected.values].map(([name, { data: right }]) => ({
    name,
    value: differenceOf(right, actual.values.get(name)?.data ?? new Float32Array()),
  }));
  const worst = differences.reduce((a, b) => (a.value >= b.value ? a : b));
  const isWhole = worst.value <= largestDifference;
  return {
    name: isWhole ? expected.name : `${expected.name} (${worst.name})`,
    difference: worst.value,
    deviceMs: actual.ms,
    processorMs: expected.ms,
  };
}

/** Lower bound on the reference value: values near zero differ by rounding alone. */
const smallestScale = 1e-2;

/** The largest difference as a part of the largest value. */
function differenceOf(expected: Float32Array, actual: Float32Array): number {
  if (expected.length !== actual.length) return Infinity;
  let largest = 0;
  let difference = 0;
  for (const [index, value] of expected.entries()) {
    const apart = Math.abs(value - at(actual, index));
    if (Number.isNaN(apart)) return Infinity;
    largest = Math.max(largest, Math.abs(value));
    difference = Math.max(difference, apart);
  }
  return difference / Math.max(smallestScale, largest);
}

function differs({ name, difference }: CheckedPart, { name: device }: Device): EngineError {
  return new EngineError(
    "device_differs",
    `the ${device} cannot be used: its ${name} differ from the processor's by ${difference.toExponential(1)}, more ` +
      `than ${largestDifference}. Use device "cpu", and report the adapter and its driver.`,
    { category: "internal" },
  );
}

function notCarried(): EngineError {
  const { platform, arch } = process;
  return new EngineError(
    "no_device",
    `ONNX Runtime has no WebGPU for ${platform} ${arch}; use device "cpu".`,
  );
}
