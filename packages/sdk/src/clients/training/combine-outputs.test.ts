import { describe, expect, it } from "vitest";
import { Datum } from "../../types/datum.js";
import { TensorData } from "../../types/tensor-data.js";
import type { LossFnType } from "../../types/training.js";
import { withLossValue } from "./combine-outputs.js";

const output = (logprobs: number[], metrics: Record<string, number> = {}) => ({
  lossFnOutputType: "scalar",
  lossFnOutputs: [{ logprobs: TensorData.fromTypedArray(Float32Array.from(logprobs)) }],
  metrics,
});

const datum = (lossFnInputs: Record<string, number[]>) => [
  new Datum({ modelInput: [1, 2, 3], lossFnInputs: { target_tokens: [2, 3, 4], ...lossFnInputs } }),
];

const policy = { logprobs: [0, -1, -2], advantages: [0, 2, -1] };
const [first, second] = [Math.exp(0.5), Math.exp(-1)]; // ratios for logprobs -0.5 and -3

describe("a loss that the server leaves out", () => {
  it.each<[LossFnType, Record<string, number[]>, Record<string, number> | null, number]>([
    ["cross_entropy", { weights: [0, 1, 0.5] }, null, 0.5 + 1.5],
    ["cross_entropy", {}, null, 4 + 0.5 + 3],
    ["importance_sampling", policy, null, -2 * first + second],
    ["ppo", policy, null, -2 * 1.2 + 0.8],
    ["ppo", policy, { clip_low_threshold: 0.1, clip_high_threshold: 9 }, -2 * first + second],
    ["cispo", policy, null, -2 * first * -0.5 + second * -3],
    ["dro", policy, { beta: 2 }, 16 + (0.25 + 1) + (1 - 3)],
  ])("is that of %s with %o", (lossFn, inputs, settings, expected) => {
    const { metrics } = withLossValue(output([-4, -0.5, -3]), datum(inputs), lossFn, settings);
    expect(metrics["loss:sum"]).toBeCloseTo(expected, 5);
  });

  it("is that of the end of a datum when the prompt's logprobs are left out too", () => {
    const data = datum({ weights: [0, 1, 0.5] });
    expect(withLossValue(output([-0.5, -3]), data, "cross_entropy", null).metrics).toEqual({
      "loss:sum": 2,
    });
  });

  it("ignores values at positions without weight", () => {
    const data = datum({ weights: [0, 1, 1] });
    const { metrics } = withLossValue(output([Number.NaN, -1, -2]), data, "cross_entropy", null);
    expect(metrics["loss:sum"]).toBe(3);
  });

  it("stays the server's if it sends one, and absent if it cannot be computed", () => {
    const data = datum({ weights: [1, 1, 1] });
    const own = output([-1, -1, -1], { "loss:sum": 7 });
    expect(withLossValue(own, data, "cross_entropy", null)).toBe(own);
    const silent = { ...own, metrics: {}, lossFnOutputs: [{}] };
    expect(withLossValue(silent, data, "cross_entropy", null)).toBe(silent);
  });
});
