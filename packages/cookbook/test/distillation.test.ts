import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promptGroup, softTargetDatum, teacherDistance } from "@tinker-ts/cookbook/distillation";
import { getRenderer, recommendedRenderer, type Renderer } from "@tinker-ts/cookbook/renderers";
import { train } from "@tinker-ts/cookbook/rl";
import { ModelInput, ServiceClient, supervisedDatum, type SamplingClient } from "tinker-ts";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

const model = "tinker-ts/sprout";
const question = "Tell me something about the weather.";

describe("learning from a teacher on the embedded engine", { timeout: 90_000 }, () => {
  let folder: string;
  let service: ServiceClient;
  let renderer: Renderer;
  let base: SamplingClient;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "distillation-"));
    vi.stubEnv("TINKER_TS_DATA_DIR", path.join(folder, "data"));
    service = new ServiceClient({ baseUrl: "local:" });
    base = await service.createSamplingClient({ baseModel: model });
    const tokenizer = await base.getTokenizer();
    renderer = await getRenderer(recommendedRenderer(model, tokenizer), tokenizer);
  });

  afterAll(async () => {
    await service.close();
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true, force: true });
  });

  const follow = async (teacher: SamplingClient, steps: number): Promise<number[]> => {
    const result = await train({
      service,
      model,
      folder: path.join(folder, `run-${steps}`),
      dataset: {
        length: steps,
        batch: () => Array.from({ length: 4 }, () => promptGroup(question, { renderer, size: 8 })),
      },
      adjusters: [teacherDistance(teacher)],
      maxTokens: 20,
      learningRate: 5e-3,
      loraRank: 8,
      saveEvery: 0,
    });
    const { metrics } = await readRunFolder(result.folder);
    return metrics.map((step) => Number(step.metrics["teacher_kl"]));
  };

  it("has nothing to learn from itself", async () => {
    const [distance] = await follow(base, 1);
    expect(Math.abs(distance!)).toBeLessThan(1e-4);
  });

  it("comes nearer to a teacher that speaks differently", async () => {
    const training = await service.createLoraTrainingClient({ baseModel: model, rank: 8, seed: 2 });
    const messages = [
      { role: "user", content: question },
      { role: "assistant", content: "It is windy today. The kite flies." },
    ];
    const { input, weights } = renderer.buildSupervisedExample(messages);
    const tokens = input.toInts();
    const start = weights.indexOf(1);
    const datum = supervisedDatum(tokens.slice(0, start), tokens.slice(start));
    for (let step = 0; step < 6; step++) {
      await training.trainStep([datum], "cross_entropy", { adamParams: { learningRate: 2e-3 } });
    }
    const distances = await follow(await training.saveWeightsAndGetSamplingClient(), 20);
    const [first, last] = [distances.slice(0, 4), distances.slice(-4)].map(
      (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
    );
    expect(first).toBeGreaterThan(0.3);
    expect(last).toBeLessThan(0.7 * first!);
  });

  it("takes a teacher's distribution as targets, at the right places and with the example's weights", () => {
    const example = { input: ModelInput.fromInts([7, 8, 9]), weights: Float32Array.of(0, 0, 0.5) };
    const datum = softTargetDatum(example, [
      null,
      [[1, 0]],
      [
        [4, Math.log(0.6)],
        [5, Math.log(0.2)],
        [0, -99_999],
      ],
    ]);
    expect([...datum.modelInput.toInts()]).toEqual([7, 8]);
    expect(datum.lossFnInputs["target_tokens"]!.toList()).toEqual([0, 0, 4, 5]);
    const weights = datum.lossFnInputs["weights"]!.toList().map(Number);
    for (const [at, value] of [0, 0, 0.375, 0.125].entries())
      expect(weights[at]).toBeCloseTo(value, 6);
    expect(() => softTargetDatum(example, [null])).toThrow(/one entry per position \(3\), got 1/);
  });
});
