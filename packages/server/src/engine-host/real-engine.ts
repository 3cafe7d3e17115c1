import type { Adapter, BaseModel, Engine, SampleResult, Snapshot } from "@tinker-ts/engine";
import type {
  EnginePort,
  PortAdapter,
  PortModel,
  PortSampleOptions,
  PortSampleResult,
  PortWeights,
} from "../engine-port/engine-port.js";

/** The engine as the server sees it. */
export function toEnginePort(engine: Engine): EnginePort {
  return {
    loadModel: async (folder, { signal }) =>
      toModelPort(await engine.loadModel(folder, signal ? { signal } : {})),
    close: () => engine.close(),
  };
}

/** Which snapshot of the engine stands behind weights that the server holds. */
const snapshots = new WeakMap<PortWeights, Snapshot>();

function toModelPort(model: BaseModel): PortModel {
  return {
    contextLength: model.contextLength,
    vocabSize: model.vocabSize,
    createAdapter: async (options) => toAdapterPort(await model.createAdapter(options)),
    sample: async (options) => toSampleResult(await model.sample(toSampleRequest(options))),
    unload: () => model.unload(),
  };
}

function toAdapterPort(adapter: Adapter): PortAdapter {
  return {
    forward: (data, loss) => adapter.forward(data, loss),
    forwardBackward: (data, loss) => adapter.forwardBackward(data, loss),
    async optimStep(options) {
      const { gradientNorm, updateNorm, learningRate, step } = await adapter.optimStep(options);
      return {
        "grad_norm:mean": gradientNorm,
        "update_norm:mean": updateNorm,
        "learning_rate:mean": learningRate,
        "step:max": step,
      };
    },
    async snapshot() {
      const snapshot = await adapter.snapshot();
      const weights: PortWeights = { release: () => snapshot.release() };
      snapshots.set(weights, snapshot);
      return weights;
    },
    exportState: (options) => adapter.exportState(options),
    importState: (state, options) => adapter.importState(state, options),
    release: () => adapter.release(),
  };
}

function toSampleRequest(options: PortSampleOptions): Parameters<BaseModel["sample"]>[0] {
  const { adapter, onToken, ...rest } = options;
  const snapshot = adapter && snapshots.get(adapter);
  return {
    ...rest,
    ...(snapshot ? { adapter: snapshot } : {}),
    ...(onToken
      ? { onToken: ({ sampleIndex, token, logprob }) => onToken(sampleIndex, token, logprob) }
      : {}),
  };
}

function toSampleResult(result: SampleResult): PortSampleResult {
  const { promptLogprobs, topkPromptLogprobs, promptCacheHitTokens } = result;
  return {
    sequences: result.samples,
    promptCacheHitTokens,
    ...(promptLogprobs
      ? {
          promptLogprobs: Array.from(promptLogprobs, (value) =>
            Number.isNaN(value) ? null : value,
          ),
        }
      : {}),
    ...(topkPromptLogprobs
      ? {
          topkPromptLogprobs: topkPromptLogprobs.map(
            (row) => row?.map(({ token, logprob }) => [token, logprob] as const) ?? null,
          ),
        }
      : {}),
  };
}
