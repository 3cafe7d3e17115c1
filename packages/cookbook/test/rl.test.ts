import { EventEmitter, once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { getRenderer, recommendedRenderer, type Renderer } from "@tinker-ts/cookbook/renderers";
import {
  groupOf,
  klPenalty,
  problemGroup,
  rolloutEvaluator,
  train,
  type DataAdjuster,
  type EnvironmentGroup,
  type PolicyDatum,
  type RlDataset,
  type RlMode,
  type RlTrainOptions,
} from "@tinker-ts/cookbook/rl";
import { ServiceClient } from "tinker-ts";
import { readJsonLines, readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

const model = "tinker-ts/sprout";

describe("training by rewards on the embedded engine", { timeout: 60_000 }, () => {
  let folder: string;
  let service: ServiceClient;
  let renderer: Renderer;
  let runs = 0;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "rl-"));
    vi.stubEnv("TINKER_TS_DATA_DIR", path.join(folder, "data"));
    service = new ServiceClient({ baseUrl: "local:" });
    const sampling = await service.createSamplingClient({ baseModel: model });
    const tokenizer = await sampling.getTokenizer();
    renderer = await getRenderer(recommendedRenderer(model, tokenizer), tokenizer);
  });

  afterAll(async () => {
    await service.close();
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true, force: true });
  });

  /** Rewards weather for flying a kite. */
  const kites = (size = 4): EnvironmentGroup =>
    problemGroup(
      {
        prompt: "Tell me something about the weather.",
        grade: (text) => /sunny|windy/i.test(text),
      },
      { renderer, size, tags: ["weather"] },
    );

  const batches = (
    length: number,
    groups: number,
    make: () => EnvironmentGroup = () => kites(),
  ): RlDataset => ({
    length,
    batch: () => Array.from({ length: groups }, () => make()),
  });

  const options = (more: Partial<RlTrainOptions> = {}): RlTrainOptions => ({
    service,
    model,
    dataset: batches(4, 4, () => kites(2)),
    folder: path.join(folder, `run-${runs++}`),
    maxTokens: 20,
    learningRate: 2e-3,
    loraRank: 8,
    seed: 5,
    ...more,
  });

  const stepsOf = async (result: {
    folder: string;
  }): Promise<Readonly<Record<string, unknown>>[]> =>
    (await readRunFolder(result.folder)).metrics.map(({ metrics }) => metrics);

  /** Writes down which groups are trained. */
  const noting =
    (tags: string[]): DataAdjuster =>
    (data, groups) => {
      tags.push(...groups.flatMap((group) => group.tags));
      return Promise.resolve({ data: [...data], metrics: {} });
    };

  /** The model's log-probabilities after a run, exactly. */
  const fingerprint = async (statePath: string): Promise<number[]> => {
    const training = await service.createTrainingClientFromStateWithOptimizer(statePath);
    const data = [
      { modelInput: [5, 8, 13], lossFnInputs: { target_tokens: [8, 13, 21], weights: [1, 1, 1] } },
    ];
    const { lossFnOutputs } = await training.forward(data, "cross_entropy");
    return Array.from(lossFnOutputs[0]!["logprobs"]!.data, Number);
  };

  it("makes good answers more probable", async () => {
    const result = await train(options({ dataset: batches(7, 4, () => kites(8)) }));
    expect(result).toMatchObject({ status: "completed", step: 7 });
    const rewards = (await stepsOf(result)).map((step) => Number(step["env/all/correct"]));
    expect(rewards.at(-1)! - rewards[0]!).toBeGreaterThan(0.3);
  });

  const modes: Record<string, RlMode> = {
    synchronous: { kind: "synchronous" },
    streaming: { kind: "streaming", minibatches: 2 },
  };

  for (const [name, mode] of Object.entries(modes)) {
    it(`${name}: a stopped run resumes without any difference`, async () => {
      const loss = { name: "ppo" } as const;
      const whole = await train(options({ mode, loss, numSubsteps: 2 }));
      const stopped = options({ mode, loss, numSubsteps: 2 });
      const abort = new AbortController();
      const first = await train({
        ...stopped,
        signal: abort.signal,
        onProgress: ({ step }) => void (step === 2 && abort.abort()),
      });
      expect(first).toMatchObject({ status: "interrupted", step: 2 });
      const second = await train(stopped);
      expect(second).toMatchObject({ status: "completed", step: 4 });
      expect(await fingerprint(second.checkpoint!.statePath!)).toEqual(
        await fingerprint(whole.checkpoint!.statePath!),
      );
      expect((await stepsOf(whole))[0]).toMatchObject({ "optim/updates": 2 });
      expect(await train(stopped)).toMatchObject({ status: "unchanged", step: 4 });
    });
  }

  it("asynchronous: trains every group once, and none sampled by too old a policy", async () => {
    const posed: string[] = [];
    const dataset: RlDataset = {
      length: 3,
      batch: (index) =>
        Array.from({ length: 3 }, (_, place) => ({
          ...kites(2),
          tags: [`group-${index * 3 + place}`],
        })),
    };
    const mode: RlMode = { kind: "asynchronous", maxStepsOffPolicy: 1, groupsPerBatch: 2 };
    const result = await train(options({ dataset, mode, adjusters: [noting(posed)] }));
    expect(result).toMatchObject({ status: "completed", step: 5 });
    expect(posed.toSorted()).toEqual(Array.from({ length: 9 }, (_, group) => `group-${group}`));
    for (const step of await stepsOf(result)) {
      const age = Number(step["training_client/step"]) - Number(step["sampling_client/step_min"]);
      expect(age).toBeLessThanOrEqual(1);
    }
  });

  it("asynchronous: replays a group that is too old, also when no other is left", async () => {
    const trained: string[] = [];
    const progress = new EventEmitter();
    let plays = 0;
    /** Takes longer than all the others together, the first time. */
    const slow = (): EnvironmentGroup => ({
      tags: ["group-0"],
      environments: async () => {
        if (plays++ === 0) await once(progress, "others done");
        return kites(2).environments();
      },
    });
    const dataset: RlDataset = {
      length: 5,
      batch: (index) => [index === 0 ? slow() : { ...kites(2), tags: [`group-${index}`] }],
    };
    const result = await train(
      options({
        dataset,
        mode: { kind: "asynchronous", maxStepsOffPolicy: 1, groupsPerBatch: 1 },
        adjusters: [noting(trained)],
        onProgress: ({ step }) => void (step === 4 && progress.emit("others done")),
      }),
    );
    expect(result).toMatchObject({ status: "completed", step: 5 });
    expect(trained).toEqual([1, 2, 3, 4, 0].map((group) => `group-${group}`));
    const last = (await stepsOf(result)).at(-1)!;
    expect(last).toMatchObject({ "rollouts/stale_groups": 1, "sampling_client/step_min": 4 });
    expect(plays).toBe(2);
  });

  it("asynchronous: a resumed run trains the remaining groups", async () => {
    const trained: string[] = [];
    const dataset: RlDataset = {
      length: 6,
      batch: (index) => [{ ...kites(2), tags: [`group-${index}`] }],
    };
    const abort = new AbortController();
    const stopped = options({
      dataset,
      mode: { kind: "asynchronous", maxStepsOffPolicy: 2, groupsPerBatch: 1 },
      adjusters: [noting(trained)],
    });
    const onProgress = ({ step }: { step: number }): void => void (step === 3 && abort.abort());
    const first = await train({ ...stopped, signal: abort.signal, onProgress });
    expect(first).toMatchObject({ status: "interrupted", step: 3 });
    expect(await train(stopped)).toMatchObject({ status: "completed", step: 6 });
    expect(trained.toSorted()).toEqual([0, 1, 2, 3, 4, 5].map((group) => `group-${group}`));
  });

  it.each([
    ["batch by batch", { kind: "synchronous" }],
    ["asynchronously", { kind: "asynchronous", maxStepsOffPolicy: 0, groupsPerBatch: 2 }],
  ] as const)("ends %s when no group has anything to teach", async (_, mode) => {
    const same = (): EnvironmentGroup =>
      problemGroup(
        { prompt: "Hello.", grade: () => true },
        { renderer, size: 2, formatCoefficient: 0 },
      );
    const result = await train(
      options({ dataset: batches(2, 2, same), mode, removeConstantRewardGroups: true }),
    );
    expect(result.status).toBe("completed");
    // Asynchronously there is no step without something to train.
    const steps = await stepsOf(result);
    expect(steps).toHaveLength(mode.kind === "synchronous" ? 2 : 0);
    for (const step of steps) {
      expect(step).toMatchObject({ "optim/updates": 0, "rollouts/constant_groups": 2 });
    }
  });

  it("continues without failed groups, and counts them", async () => {
    const broken = (): EnvironmentGroup =>
      groupOf({
        size: 2,
        make: () => ({
          start: () => ({ input: [5] }),
          step: () => Promise.reject(new TypeError("no")),
        }),
      });
    const dataset: RlDataset = { length: 1, batch: () => [kites(), broken()] };
    const result = await train(options({ dataset }));
    const [step] = await stepsOf(result);
    expect(step).toMatchObject({ "rollout_errors/groups_skipped": 1, "env/all/total_episodes": 4 });
    expect(Number(step!["rollout_errors/TypeError"])).toBeGreaterThan(0);
  });

  it("keeps the policy near a reference on request", async () => {
    const reference = await service.createSamplingClient({ baseModel: model });
    const adjusters = [klPenalty(reference, { coefficient: 0.1 })];
    const [first] = await stepsOf(await train(options({ dataset: batches(1, 2), adjusters })));
    // The adapter is new, so policy and reference are the same model.
    expect(Math.abs(Number(first!["kl_policy_base"]))).toBeLessThan(1e-4);
    expect(Math.abs(Number(first!["optim/kl_sample_train_v1"]))).toBeLessThan(1e-4);
  });

  it("dro: does not train prompts", async () => {
    const seen: (readonly PolicyDatum[])[] = [];
    const silent = (): EnvironmentGroup =>
      problemGroup(
        { prompt: "Hello.", grade: () => 0 },
        { renderer, size: 2, formatCoefficient: 0 },
      );
    const result = await train(
      options({
        dataset: batches(1, 1, silent),
        loss: { name: "dro", beta: 10 },
        adjusters: [(data) => (seen.push(data), Promise.resolve({ data: [...data], metrics: {} }))],
      }),
    );
    // All advantages are 0 and policy and sampler agree, so a gradient could come from prompts only.
    const [step] = await stepsOf(result);
    expect(Math.abs(Number(step!["optim/loss"]))).toBeLessThan(1e-6);
    expect(seen[0]!.length).toBeGreaterThan(0);
  });

  it("evaluates at intervals, and logs that separately", async () => {
    const evaluator = rolloutEvaluator({
      name: "held out",
      groups: () => [kites(2), kites(2), kites(2)],
      maxTokens: 20,
      seed: 3,
    });
    const result = await train(
      options({ dataset: batches(3, 1, () => kites(2)), evaluators: [evaluator], evalEvery: 2 }),
    );
    const steps = await stepsOf(result);
    expect(steps.map((step) => step["held out/env/all/total_episodes"])).toEqual([6, undefined, 6]);
    expect(steps[0]).toHaveProperty(["held out/pass@2"]);
    const file = path.join(
      result.folder,
      "iteration_000002",
      "eval_held_out_rollout_summaries.jsonl",
    );
    const { lines } = await readJsonLines(file);
    expect(lines).toHaveLength(6);
    expect(lines[0]).toMatchObject({ split: "eval/held out", iteration: 2 });
  });

  it("logs rollouts", async () => {
    const result = await train(options({ dataset: batches(1, 2) }));
    const iteration = path.join(result.folder, "iteration_000000");
    const { lines: summaries } = await readJsonLines(
      path.join(iteration, "train_rollout_summaries.jsonl"),
    );
    expect(summaries).toHaveLength(8);
    expect(summaries[0]).toMatchObject({
      schema_version: 1,
      split: "train",
      tags: ["weather"],
      sampling_client_step: 0,
      steps: [{ step_idx: 0, episode_done: true }],
      final_ob_len: 0,
    });
    const { lines } = await readJsonLines(path.join(iteration, "train_transcripts.jsonl"));
    expect(lines[0]!["text"]).toContain("Tell me something about the weather.");
  });

  it("refuses invalid settings before the start", async () => {
    const refused = (more: Partial<RlTrainOptions>): Promise<unknown> => train(options(more));
    await expect(refused({ learningRate: 0 })).rejects.toThrow(/learningRate/);
    await expect(refused({ maxTokens: 0 })).rejects.toThrow(/maxTokens/);
    await expect(refused({ dataset: batches(0, 1) })).rejects.toThrow(/dataset.length/);
    const mode = { kind: "streaming", minibatches: 3 } as const;
    await expect(refused({ mode })).rejects.toThrow(/4 groups cannot be divided/);
  });
});
