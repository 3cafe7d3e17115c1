import { expect, it } from "vitest";
import { NativeCalls } from "../execution/native-calls.js";
import type { ModelConfig } from "../model/model-config.js";
import { EngineCore } from "./engine-core.js";

const recurrent = { window: null, rotation: null } as const;

const config: ModelConfig = {
  architecture: "qwen3_5",
  vocabSize: 20,
  hiddenSize: 8,
  intermediateSize: 12,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 4,
  normEpsilon: 1e-6,
  rope: { theta: 10_000, scaling: null },
  contextLength: 64,
  tiedEmbeddings: true,
  qkvBias: false,
  outputBias: false,
  mlpBias: false,
  qkNorm: true,
  bosTokenId: null,
  eosTokenIds: [],
  deltaRule: { keyHeads: 1, valueHeads: 1, keyDim: 4, valueDim: 4, kernel: 2 },
  convolution: { kernel: 2, bias: false },
  mamba: {
    heads: 2,
    headDim: 4,
    groups: 1,
    stateSize: 3,
    kernel: 2,
    convBias: false,
    projectionBias: false,
    timeStep: [0, Infinity],
  },
};

it.each([
  ["deltaRule", "layers with the gated delta rule"],
  ["convolution", "layers with a short convolution"],
  ["mamba", "Mamba layers"],
] as const)(
  "refuses a model with %s on a GPU before its weights are created",
  async (mixer, name) => {
    const core = new EngineCore({
      threads: 1,
      device: "gpu",
      memoryBytes: 1e9,
      nativeCalls: new NativeCalls().memory,
    });
    const layerKinds = [{ window: null, rotation: "rope" } as const, { mixer, ...recurrent }];
    const request = {
      config: { ...config, layerKinds },
      seed: 1,
      tensors: null,
      precision: { weights: "f32" } as const,
    };
    const context = { signal: new AbortController().signal, emit: undefined };
    await expect(core.handlers.createModel(request, context)).rejects.toMatchObject({
      code: "unsupported_model",
      message: expect.stringMatching(new RegExp(`qwen3_5 have ${name}.*use the device "cpu"`)),
    });
    await core.close();
  },
);
