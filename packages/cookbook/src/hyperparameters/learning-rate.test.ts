import path from "node:path";
import { expect, it } from "vitest";
import { recommendedLearningRate } from "./learning-rate.js";

const fixture = (kind: string): string =>
  path.resolve(import.meta.dirname, `../../../engine/test/fixtures/${kind}/model`);

const rateOf = (hiddenSize: number, exponent: number): number =>
  5e-4 * (2000 / hiddenSize) ** exponent;

it.each([
  ["LiquidAI/LFM2-350M", 1024],
  ["ibm-granite/granite-4.0-h-350m", 768],
  ["allenai/Olmo-3-7B-Instruct", 4096],
  ["mistralai/Ministral-3-8B-Instruct-2512-BF16", 4096],
  ["openbmb/MiniCPM5-1B", 1536],
  ["Qwen/Qwen3.5-2B", 2048],
])("knows a rate for %s", (model, hiddenSize) => {
  expect(recommendedLearningRate(model)).toBeCloseTo(rateOf(hiddenSize, 0.0775), 12);
});

it.each([
  ["qwen3_5_vl", 0.0775],
  ["lfm2", 0.0775],
  ["granite_hybrid", 0.0775],
  ["olmo3", 0.0775],
  ["ministral3", 0.0775],
  ["llama", 0.781],
])("knows a rate for a folder with a model of the kind %s", (kind, exponent) => {
  expect(recommendedLearningRate(fixture(kind))).toBeCloseTo(rateOf(64, exponent), 9);
});

it("knows none for other folders and names", () => {
  expect(() => recommendedLearningRate(fixture("gemma3"))).toThrow("choose one");
  expect(() => recommendedLearningRate("lfm2 of no known size")).toThrow("is not known here");
});
