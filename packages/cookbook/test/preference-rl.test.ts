import path from "node:path";
import {
  chatPreferenceModel,
  comparisonDatum,
  comparisonMessages,
  labelTokens,
  toComparison,
  tournamentGroup,
  trainFromPreferences,
  trainRewardModel,
  winRateEvaluator,
  type Comparison,
  type PreferencePipelineOptions,
} from "@tinker-ts/cookbook/preference";
import {
  getRenderer,
  recommendedRenderer,
  textOf,
  type Renderer,
} from "@tinker-ts/cookbook/renderers";
import { rolloutGroup, samplingPolicy, totalRewards } from "@tinker-ts/cookbook/rl";
import type { SamplingClient } from "tinker-ts";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LocalPlace } from "./support/local-service.js";

const model = "tinker-ts/sprout";
const question = "Describe the weather.";
const sunny = (row: number): string =>
  `It is sunny today. Take your ${["red", "blue"][row % 2]} hat.`;
const rainy = (row: number): string =>
  `It is rainy today. Take your ${["grey", "pink"][row % 2]} cap.`;
const rows = Array.from({ length: 12 }, (_, row) => ({
  prompt: question,
  chosen: sunny(row),
  rejected: rainy(row),
}));

/** Prefers the longer answer. */
const longer = async ({ completionA, completionB }: Comparison): Promise<number> =>
  Math.sign(textOf(completionB[0]!).length - textOf(completionA[0]!).length);

describe("reward models and tournaments on the embedded engine", { timeout: 90_000 }, () => {
  let place: LocalPlace;
  let base: SamplingClient;
  let renderer: Renderer;
  beforeAll(async () => {
    place = new LocalPlace();
    base = await place.service.createSamplingClient({ baseModel: model });
    const tokenizer = await base.getTokenizer();
    renderer = await getRenderer(recommendedRenderer(model, tokenizer), tokenizer);
  });
  afterAll(() => place.close());

  it("trains only the label, after both completions", () => {
    const comparison = toComparison(rows[0]);
    expect(comparisonMessages(comparison).map(textOf)).toEqual([
      question,
      "==== Completion A ====",
      sunny(0),
      "==== Completion B ====",
      rainy(0),
      "==== Preference ====",
    ]);
    const datum = comparisonDatum(comparison, renderer);
    const weights = Array.from(datum.lossFnInputs["weights"]!.data as Float32Array);
    expect(weights.filter((weight) => weight !== 0)).toEqual([1]);
    expect(weights.at(-1)).toBe(1);
    expect(Number(datum.lossFnInputs["target_tokens"]!.data.at(-1))).toBe(labelTokens(renderer).A);
  });

  it("learns the form of answers, and judges with probabilities that sum up to a score", async () => {
    const result = await trainRewardModel({
      service: place.service,
      model,
      folder: place.file("judge"),
      data: rows,
      testSize: 4,
      batchSize: 4,
      numEpochs: 2,
      learningRate: 4e-3,
      loraRank: 8,
      saveEvery: 0,
    });
    const { metrics } = await readRunFolder(result.folder);
    const losses = metrics.map((step) => Number(step.metrics["train_mean_nll"]));
    expect(losses[3]).toBeLessThan(losses[0]! / 2);
    expect(result.evaluation["test/accuracy"]).toBe(1);
    const modelPath = result.checkpoint!.samplerPath!;
    // A later run can read its prompt format.
    const run = await place.service.createRestClient().getTrainingRunByTinkerPath(modelPath);
    expect(run.userMetadata).toMatchObject({ renderer_name: renderer.name });
    const judge = chatPreferenceModel(
      await place.service.createSamplingClient({ modelPath }),
      renderer,
    );
    const score = await judge(toComparison(rows[0]));
    expect(Math.abs(score)).toBeLessThanOrEqual(1);
    expect(score).not.toBe(0);
  });

  it("rewards an answer with wins minus losses, and less without a clean end", async () => {
    const group = tournamentGroup(question, { renderer, judge: longer, size: 4 });
    const policy = samplingPolicy(base, { maxTokens: 40 });
    const played = await rolloutGroup(policy, group, { seed: 3 });
    const lengths = played.trajectories.map(
      ({ transitions }) =>
        textOf(renderer.parseResponse(transitions[0]!.action.tokens).message).length,
    );
    const wins = lengths.map(
      (own) => lengths.reduce((sum, other) => sum + Math.sign(own - other), 0) / 3,
    );
    for (const [member, reward] of totalRewards(played).entries()) {
      expect(reward).toBeCloseTo(wins[member]!, 9);
    }
    expect(played.tags).toEqual(["pair_pref"]);
    expect(played.metrics[0]).toMatchObject({ format: 1 });

    const cut = await rolloutGroup(samplingPolicy(base, { maxTokens: 2 }), group, { seed: 3 });
    expect(cut.metrics.map(({ format }) => format)).toEqual([0, 0, 0, 0]);
    expect(totalRewards(cut).reduce((sum, reward) => sum + reward, 0)).toBeCloseTo(-4, 9);
  });

  it("compares answers with given ones in both orders", async () => {
    const training = await place.service.createLoraTrainingClient({ baseModel: model, rank: 4 });
    const evaluate = (completion: string) =>
      winRateEvaluator({
        rows: [{ prompt: question, completion }],
        judge: longer,
        renderer,
        maxTokens: 40,
      }).evaluate({ training, step: 0, sampler: async () => base });
    expect(await evaluate("No.")).toEqual({ win_rate: 1, stderr: 0 });
    expect(await evaluate("word ".repeat(99))).toEqual({ win_rate: 0, stderr: 0 });
  });

  it("runs three stages, is stopped in one, and repeats none", async () => {
    const controller = new AbortController();
    const stages: string[] = [];
    const options: PreferencePipelineOptions = {
      service: place.service,
      model,
      folder: place.file("pipeline"),
      supervised: {
        data: rows.map(({ prompt, chosen }) => ({ prompt, completion: chosen })),
        maxSteps: 2,
        batchSize: 4,
        loraRank: 4,
      },
      rewardModel: { data: rows, maxSteps: 3, batchSize: 4, loraRank: 4 },
      rl: {
        prompts: [question, "Tell me something about the weather."],
        maxSteps: 1,
        size: 2,
        maxTokens: 24,
        loraRank: 4,
        learningRate: 1e-3,
      },
      sinks: (stage) => [{ log: ({ kind }) => void (kind === "metrics" && stages.push(stage)) }],
    };
    const stopped = await trainFromPreferences({
      ...options,
      rewardModel: {
        ...options.rewardModel,
        onProgress: ({ step }) => step >= 1 && controller.abort(),
      },
      signal: controller.signal,
    });
    expect(stopped).toMatchObject({ status: "interrupted", stage: "reward_model" });
    const done = await trainFromPreferences(options);
    expect(done).toMatchObject({ status: "completed", stage: "rl" });
    expect(done.stages.sft).toMatchObject({ status: "unchanged", step: 2 });
    expect(done.stages.reward_model).toMatchObject({ status: "completed", step: 3 });
    expect(done.stages.rl).toMatchObject({ status: "completed", step: 1 });
    const { config } = await readRunFolder(path.join(options.folder, "rl"));
    expect(config!["load_checkpoint_path"]).toBe(done.stages.sft!.checkpoint!.statePath);
    expect(done.checkpoint).toEqual(done.stages.rl!.checkpoint);
    expect(new Set(stages)).toEqual(new Set(["sft", "reward_model", "rl"]));
    const again = await trainFromPreferences(options);
    expect(Object.values(again.stages).map(({ status }) => status)).toEqual([
      "unchanged",
      "unchanged",
      "unchanged",
    ]);
  });
});
