import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { NamedTensors } from "@tinker-ts/hub/weights";
import {
  families,
  fixtureData,
  hasFixture,
  loadFixtureModel,
  readExpected,
  readTensors,
  type Expected,
} from "../../test/support/fixture-model.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import { sitesOfFlags, type Site } from "../model/sites.js";
import { at } from "../util/arrays.js";
import { completeAdamOptions } from "./adam.js";
import { adapterLayout } from "../model/parameter-layout.js";
import { ParameterState } from "./parameter-state.js";
import { MergedWeights } from "./merged-weights.js";
import { prepareData } from "./prepare-data.js";
import type { PassResult } from "./pass.js";
import { Trainer } from "./trainer.js";
import { trainingBudget, type TrainingBudget } from "./training-budget.js";

const everything = { trainAttn: true, trainMlp: true, trainUnembed: true };
const noPause = (): Promise<void> => Promise.resolve();

describe.each(families)("training %s agrees with PyTorch", (family) => {
  let model: ModelRuntime;
  let sites: readonly Site[];
  let expected: Expected;
  let adapter: NamedTensors;

  beforeAll(async () => {
    model = await loadFixtureModel(family);
    sites = sitesOfFlags(model.config, everything);
    expected = readExpected(family);
    adapter = await readTensors(`${family}/adapter/adapter_model.safetensors`);
  });
  afterAll(() => model.release());

  function newState(): ParameterState {
    const layout = adapterLayout(model.config, sites, expected.rank);
    return new ParameterState(layout, new Float32Array(layout.length));
  }

  function loadedState(): ParameterState {
    const state = newState();
    state.import({ tensors: adapter }, false);
    return state;
  }

  async function pass(
    state: ParameterState,
    loss: string,
    backward: boolean,
    limits: Partial<TrainingBudget> = {},
  ): Promise<PassResult> {
    const budget = { ...trainingBudget(model.config, 1e9), ...limits };
    const merged = new MergedWeights(model);
    const trainer = new Trainer(model, { kind: "adapter", sites, merged: false }, budget, merged);
    const config = expected.losses[loss]?.config ?? {};
    const prepared = prepareData(model.config, fixtureData(expected, loss), loss, config);
    const gradient = backward ? state.borrowGradient() : undefined;
    const parameters = {
      layout: state.layout,
      values: state.values,
      rank: expected.rank,
      scale: expected.alpha / expected.rank,
      version: state.version,
    };
    const result = await trainer.run({
      ...prepared,
      parameters,
      pause: noPause,
      ...(gradient === undefined ? {} : { gradient }),
    });
    if (gradient !== undefined) state.addGradient(gradient);
    return result;
  }

  it("gives the base model's log-probabilities when the adapter is zero", async () => {
    const { outputs } = await pass(newState(), "cross_entropy", false);
    for (const [index, want] of expected.base_logprobs.entries()) {
      expectClose(at(outputs, index).logprobs, want, 1e-4);
    }
  });

  it("gives the adapted model's log-probabilities", async () => {
    const { outputs } = await pass(loadedState(), "cross_entropy", false);
    for (const [index, want] of expected.lora_logprobs.entries()) {
      expectClose(at(outputs, index).logprobs, want, 1e-4);
    }
  });

  const ways: Record<string, Partial<TrainingBudget>> = {
    "keeping activations": {},
    "recomputing activations": { activationBytes: 0 },
    "one datum and one layer at a time": { microBatchTokens: 1, layersPerSegment: 1 },
    "attention in blocks": { wholeTokens: 4, blockTokens: 4, stateBlockTokens: 64 },
    "attention in blocks, recomputing activations": {
      wholeTokens: 9,
      blockTokens: 7,
      stateBlockTokens: 128,
      activationBytes: 0,
    },
    "without merging the adapter": { mergeFromTokens: Infinity },
    "layer by layer, keeping expensive values": { layersPerSegment: 1, keptKind: "dear" },
    "merging the adapter, attention in blocks": {
      mergeFromTokens: 1,
      wholeTokens: 5,
      blockTokens: 5,
      chunkTokens: 4,
    },
    "merging the adapter, recomputing activations": { mergeFromTokens: 1, activationBytes: 0 },
  };
  // These models are stiff: single precision itself differs from double by a tenth of this.
  const gradientTolerance = family.startsWith("qwen3_5") ? 3e-4 : 1e-3;
  const losses = ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"];
  for (const loss of losses) {
    // Some families were recorded with the gradients of two losses and the values of all.
    if (!hasFixture(`${family}/grads_${loss}.safetensors`)) {
      it(`gives the value of ${loss} and the norm of its gradient`, async () => {
        const state = loadedState();
        const { metrics } = await pass(state, loss, true);
        const want = expected.losses[loss];
        expect(metrics["loss:sum"]).toBeCloseTo(want?.loss_sum ?? NaN, 3);
        expect(
          Math.abs(normOf(state.exportGradient()) / (want?.grad_norm ?? NaN) - 1),
        ).toBeLessThan(gradientTolerance);
      });
      continue;
    }
    for (const [way, limits] of Object.entries(ways)) {
      // Pipelines and losses are independent: two families cover all combinations.
      const isBrief = family !== "qwen3" && family !== "qwen3_5";
      if (isBrief && loss !== "cross_entropy" && way !== "keeping activations") continue;
      it(`gives ${loss} and its gradients, ${way}`, async () => {
        const state = loadedState();
        const { metrics, outputs } = await pass(state, loss, true, limits);
        const want = expected.losses[loss];
        expect(metrics["loss:sum"]).toBeCloseTo(want?.loss_sum ?? NaN, 3);
        for (const [index, logprobs] of expected.lora_logprobs.entries()) {
          expectClose(at(outputs, index).logprobs, logprobs, 1e-4);
        }
        const gradients = await readTensors(`${family}/grads_${loss}.safetensors`);
        expectSameTensors(state.exportGradient(), gradients, gradientTolerance);
      });
    }
  }

  it("ends three AdamW steps with decay and clipping where PyTorch does", async () => {
    const state = loadedState();
    for (const step of expected.adam_steps) {
      const { metrics } = await pass(state, "cross_entropy", true);
      expect(metrics["loss:sum"]).toBeCloseTo(step.loss_sum, 2);
      const { gradientNorm } = await state.step(
        model.programs,
        completeAdamOptions({
          learningRate: step.adam_params.learning_rate,
          beta1: step.adam_params.beta1,
          beta2: step.adam_params.beta2,
          eps: step.adam_params.eps,
          weightDecay: step.adam_params.weight_decay,
          gradClipNorm: step.adam_params.grad_clip_norm,
        }),
      );
      expect(Math.abs(gradientNorm / step.grad_norm - 1)).toBeLessThan(1e-3);
    }
    const after = await readTensors(`${family}/adapter_after_steps.safetensors`);
    expectSameTensors(state.export(false).tensors, after, 1e-3);
  });
});

function normOf(tensors: NamedTensors): number {
  const squares = [...tensors.values()].map(({ data }) =>
    data.reduce((sum, value) => sum + value * value, 0),
  );
  return Math.sqrt(squares.reduce((sum, square) => sum + square, 0));
}

function expectClose(actual: Float32Array, want: readonly number[], tolerance: number): void {
  expect(actual.length).toBe(want.length);
  for (const [index, value] of want.entries()) {
    expect(Math.abs(at(actual, index) - value)).toBeLessThan(tolerance);
  }
}

/** Compares tensors relative to the largest value of each. */
function expectSameTensors(actual: NamedTensors, want: NamedTensors, tolerance: number): void {
  expect([...actual.keys()].toSorted()).toEqual([...want.keys()].toSorted());
  for (const [name, { data }] of want) {
    const own = actual.get(name)?.data ?? new Float32Array();
    const largest = data.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
    const worst = data.reduce((max, value, i) => Math.max(max, Math.abs(value - at(own, i))), 0);
    expect(worst / largest, name).toBeLessThan(tolerance);
  }
}
