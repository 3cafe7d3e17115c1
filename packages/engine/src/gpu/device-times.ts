import { processor } from "../execution/device.js";
import type { ProgramOptions } from "../execution/program.js";
import { initialWeights } from "../model/initial-weights.js";
import type { ModelConfig } from "../model/model-config.js";
import { layerSitesOf } from "../model/sites.js";
import { FairTurns } from "../util/turns.js";
import { LoadedModel } from "../runtime/loaded-model.js";
import { planMemory } from "../runtime/memory-plan.js";
import { checkedConfig } from "./self-check.js";
import { TrainedParameters } from "../runtime/trained-parameters.js";

/** Durations of a training pass. */
export interface DeviceTimes {
  /** A lower bound if the pass was stopped early. */
  readonly deviceMs: number;
  readonly processorMs: number;
  /** Whether the pass was stopped early because the device was too slow. */
  readonly isGivenUp: boolean;
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
const [tokenCount, warmTokenCount] = [256, 32];
const rank = 16;

/** A pass is stopped when it takes this many times as long as on the processor: software drivers take minutes. */
const mostTimes = 3;

/** Times a forward-backward call on a device and on the processor, each after a short one that is not timed. */
export async function timeDevice(options: ProgramOptions): Promise<DeviceTimes> {
  const processorMs = await time({ ...options, device: processor });
  const deviceMs = await time(options, mostTimes * processorMs);
  return { deviceMs, processorMs, isGivenUp: deviceMs > mostTimes * processorMs };
}

async function time(programs: ProgramOptions, mostMs = Infinity): Promise<number> {
  const memory = planMemory(2 ** 32, 2 ** 26, 0);
  const source = { weights: initialWeights(config, 1), folder: null, isLasting: false };
  const turns = new FairTurns();
  const model = await LoadedModel.load(config, source, programs, memory, turns, {});
  try {
    const sites = layerSitesOf(config);
    const trained = TrainedParameters.adapter(model, { rank, alpha: rank, seed: 1, sites });
    const call = { parameters: 0, lossFn: "cross_entropy", lossFnConfig: {}, backward: true };
    const pass = (length: number, pause: () => Promise<void>) => {
      const tokens = Array.from({ length }, (_, index) => (index * 7) % config.vocabSize);
      const inputs = { target_tokens: { data: tokens, shape: [length] } };
      const data = [{ tokens, inputs }];
      return trained.pass({ ...call, data }, { pause });
    };
    await pass(warmTokenCount, async () => {});
    const startMs = performance.now();
    const passedMs = (): number => performance.now() - startMs;
    const tooLong = new Error("the pass takes too long");
    await pass(tokenCount, async () => {
      if (passedMs() > mostMs) throw tooLong;
    }).catch((error: unknown) => {
      if (error !== tooLong) throw error;
    });
    return passedMs();
  } finally {
    await model.release();
  }
}
