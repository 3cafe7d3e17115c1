import { processor } from "../execution/device.js";
import type { ProgramOptions } from "../execution/program.js";
import type { ModelConfig } from "../files/model-config.js";
import { initialWeights } from "../model/initial-weights.js";
import { layerSitesOf } from "../model/sites.js";
import { FairTurns } from "../util/fair-turns.js";
import { LoadedModel } from "./loaded-model.js";
import { planMemory } from "./memory-plan.js";
import { checkedConfig } from "./self-check.js";
import { TrainedParameters } from "./trained-parameters.js";

/** What a training pass took. */
export interface DeviceTimes {
  readonly deviceMs: number;
  readonly processorMs: number;
}

/** One layer of a model of 0.6 billion parameters; a software driver passes for a GPU until it is timed. */
const config: ModelConfig = {
  ...checkedConfig,
  vocabSize: 1024,
  hiddenSize: 1024,
  intermediateSize: 3072,
  heads: 16,
  kvHeads: 8,
  headDim: 128,
  contextLength: 512,
};
const tokenCount = 256;
const rank = 16;

/** Times a forward-backward call on a device and on the processor, each after one that is not timed. */
export async function timeDevice(options: ProgramOptions): Promise<DeviceTimes> {
  const processorMs = await time({ ...options, device: processor });
  return { deviceMs: await time(options), processorMs };
}

async function time(programs: ProgramOptions): Promise<number> {
  const memory = planMemory(2 ** 32, 2 ** 26, 0);
  const ignored = { signal: new AbortController().signal, onProgress: () => {} };
  const source = initialWeights(config, 1);
  const turns = new FairTurns();
  const model = await LoadedModel.load(config, source, null, programs, memory, turns, ignored);
  try {
    const sites = layerSitesOf(config);
    const trained = TrainedParameters.adapter(model, { rank, alpha: rank, seed: 1, sites });
    const tokens = Array.from({ length: tokenCount }, (_, index) => (index * 7) % config.vocabSize);
    const inputs = { target_tokens: { data: tokens, shape: [tokenCount] } };
    const call = { parameters: 0, lossFn: "cross_entropy", lossFnConfig: {}, backward: true };
    const pass = () =>
      trained.pass(
        { ...call, data: [{ tokens, inputs }] },
        { pause: async () => {}, onProgress: () => {} },
      );
    await pass();
    const startMs = performance.now();
    await pass();
    return performance.now() - startMs;
  } finally {
    await model.release();
  }
}
