import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Engine, SafetensorsFile } from "@tinker-ts/engine";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Conversation } from "../src/conversation.js";
import { pretrain, type PretrainProgress } from "../src/pretrain.js";
import { learningRateAt, sproutRecipe, type Recipe } from "../src/recipe.js";

vi.setConfig({ testTimeout: 60_000 });

/** A recipe that is done in seconds and learns little more than which letters are common. */
const tinyRecipe: Recipe = {
  ...sproutRecipe,
  hiddenSize: 32,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 16,
  intermediateSize: 64,
  mergeCount: 100,
  tokenizerDocuments: 200,
  steps: 12,
  decaySteps: 4,
  batchTokens: 600,
  warmupSteps: 2,
  peakLearningRate: 1e-2,
};

let base = "";
beforeEach(async () => {
  base = await mkdtemp(path.join(tmpdir(), "tinker-ts-test-"));
});
afterEach(async () => {
  await rm(base, { recursive: true, force: true });
});

const folder = (...parts: string[]): string => path.join(base, ...parts);

interface Run {
  readonly name: string;
  readonly recipe?: Recipe;
  /** Ends the run after this step. */
  readonly until?: number;
}

/** Runs in folders of a name, so that a second run of the name goes on with the first. */
async function run({ name, recipe = tinyRecipe, until = Infinity }: Run) {
  const progress: PretrainProgress[] = [];
  const stop = new AbortController();
  const finished = pretrain({
    recipe,
    outputFolder: folder(name, "model"),
    workFolder: folder(name, "work"),
    threads: 1,
    signal: stop.signal,
    onProgress: (step) => {
      progress.push(step);
      if (step.step === until) stop.abort(new Error("stopped"));
    },
  });
  return { finished, progress };
}

async function weightsOf(name: string): Promise<Map<string, Float32Array>> {
  const file = await SafetensorsFile.open(folder(name, "model", "model.safetensors"));
  const weights = new Map<string, Float32Array>();
  for (const tensor of file.tensors.keys()) weights.set(tensor, await file.readFloats(tensor));
  await file.close();
  return weights;
}

it("makes a model that can be loaded and has learned something", async () => {
  const { finished, progress } = await run({ name: "whole" });
  await finished;
  const losses = progress.map(({ loss }) => loss);
  expect(losses).toHaveLength(12);
  expect(losses[0]).toBeCloseTo(Math.log(359), 0);
  expect(losses.at(-1)).toBeLessThan((losses[0] ?? 0) - 1);
  expect((await readdir(folder("whole", "model"))).toSorted()).toEqual([
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
  ]);
  await using engine = await Engine.create({ threads: 1 });
  const model = await engine.loadModel(folder("whole", "model"));
  const conversation = await Conversation.with(model);
  const [sample] = await conversation.ask("Hello!", { maxTokens: 5 });
  expect(sample?.tokens.length).toBeGreaterThan(0);
});

it("goes on after an interruption as if there had been none", async () => {
  await (
    await run({ name: "whole" })
  ).finished;
  await expect((await run({ name: "halves", until: 5 })).finished).rejects.toThrow("stopped");
  const { finished, progress } = await run({ name: "halves" });
  await finished;
  expect(progress[0]?.step).toBe(6);
  expect(await weightsOf("halves")).toEqual(await weightsOf("whole"));
});

it("may become longer before the learning rate falls, and not after", async () => {
  const longer = { ...tinyRecipe, steps: 14 };
  await expect((await run({ name: "early", until: 8 })).finished).rejects.toThrow("stopped");
  const { finished, progress } = await run({ name: "early", recipe: longer });
  await finished;
  expect(progress.at(-1)?.step).toBe(14);

  await expect((await run({ name: "late", until: 9 })).finished).rejects.toThrow("stopped");
  await expect((await run({ name: "late", recipe: longer })).finished).rejects.toThrow(
    /belongs to another recipe. Start anew with --fresh/,
  );
});

it("refuses to go on with another recipe", async () => {
  await expect((await run({ name: "one", until: 2 })).finished).rejects.toThrow("stopped");
  const other = { ...tinyRecipe, weightDecay: 0 };
  await expect((await run({ name: "one", recipe: other })).finished).rejects.toThrow(
    /belongs to another recipe/,
  );
});

it("warms up, stays at the peak and comes down at the end", () => {
  const recipe = { ...tinyRecipe, steps: 100, warmupSteps: 10, decaySteps: 20 };
  const rates = Array.from({ length: 100 }, (_, step) => learningRateAt(recipe, step));
  const peak = recipe.peakLearningRate;
  expect(rates[0]).toBeCloseTo(peak / 10, 12);
  expect(rates.slice(9, 81)).toEqual(rates.slice(9, 81).map(() => peak));
  expect(rates[90]).toBeCloseTo(peak * (0.01 + 0.99 / 2), 12);
  expect(rates[99]).toBeLessThan(peak / 50);
});
