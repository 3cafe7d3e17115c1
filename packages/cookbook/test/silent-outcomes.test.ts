import { readFileSync, writeFileSync } from "node:fs";
import { evaluate } from "@tinker-ts/cookbook/evaluation";
import { trainOnPolicy } from "@tinker-ts/cookbook/distillation";
import {
  preparePreferences,
  train as trainOnPreferences,
  type LabeledComparison,
  type PreferenceTrainOptions,
} from "@tinker-ts/cookbook/preference";
import { getRenderer, recommendedRenderer, type Renderer } from "@tinker-ts/cookbook/renderers";
import {
  problemGroup,
  train as trainByRewards,
  type EnvironmentGroup,
  type RlTrainOptions,
} from "@tinker-ts/cookbook/rl";
import type { RunResult } from "@tinker-ts/cookbook/runs";
import {
  completeLoopOptions,
  prepareData,
  train,
  trainBatches,
  type Objective,
  type TrainOptions,
} from "@tinker-ts/cookbook/supervised";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countingData, LocalPlace, tinyModel } from "./support/local-service.js";

const model = "tinker-ts/sprout";
let place: LocalPlace;
let renderer: Renderer;
let runs = 0;

beforeAll(async () => {
  place = new LocalPlace();
  const sampling = await place.service.createSamplingClient({ baseModel: model });
  const tokenizer = await sampling.getTokenizer();
  renderer = await getRenderer(recommendedRenderer(model, tokenizer), tokenizer);
});
afterAll(() => place.close());

const rows = (answer = "fine"): object[] =>
  Array.from({ length: 8 }, (_, index) => ({ prompt: `day ${index}`, completion: answer }));

function sft(more: Partial<TrainOptions> = {}): TrainOptions {
  return {
    service: place.service,
    model,
    folder: place.file(`run-${runs++}`),
    data: rows(),
    maxSteps: 2,
    loraRank: 4,
    learningRate: 1e-3,
    ...more,
  };
}

describe("a folder that holds a run", () => {
  it("is refused with other data, with an error that names the difference", async () => {
    const given = sft();
    await train(given);
    await expect(train({ ...given, data: rows("bad") })).rejects.toThrow(
      /holds a run with other settings: data differs.*ifExists: "new"/,
    );
    expect(await train({ ...given, data: rows() })).toMatchObject({ status: "unchanged" });
  });

  it("compares rows by content and not by their file", async () => {
    const file = (name: string): string => {
      const path = place.file(name);
      writeFileSync(
        path,
        rows()
          .map((row) => JSON.stringify(row))
          .join("\n"),
      );
      return path;
    };
    const given = sft({ data: file("a.jsonl") });
    await train(given);
    expect(await train({ ...given, data: file("b.jsonl") })).toMatchObject({ status: "unchanged" });
  });

  it.each<[string, Partial<TrainOptions>, RegExp]>([
    ["seed", { seed: 77 }, /seed was 0, is 77/],
    ["learning rate", { learningRate: 2e-3 }, /learning_rate was 0.001, is 0.002/],
    ["batch size", { batchSize: 2 }, /batch_size was 4, is 2/],
    ["length", { maxLength: 20 }, /max_length was null, is 20/],
    ["start", { loadCheckpointPath: "tinker://x/weights/y" }, /load_checkpoint_path was null/],
  ])("is refused with another %s", async (_, change, message) => {
    const given = sft();
    await train(given);
    await expect(train({ ...given, ...change })).rejects.toThrow(message);
  });

  it("is deleted, or kept beside a numbered folder, on request", async () => {
    const given = sft();
    const first = await train(given);
    const second = await train({ ...given, seed: 77, ifExists: "new" });
    expect(second).toMatchObject({ status: "completed", folder: `${first.folder}-2` });
    const third = await train({ ...given, data: rows("bad"), ifExists: "delete" });
    expect(third).toMatchObject({ status: "completed", folder: first.folder });
    expect((await readRunFolder(second.folder)).config).toMatchObject({ seed: 77 });
  });

  it("continues with more epochs, with a message", async () => {
    const given = sft({ maxSteps: undefined, numEpochs: 1 });
    expect(await train(given)).toMatchObject({ status: "completed", step: 2 });
    const result = await train({ ...given, numEpochs: 3 });
    expect(result).toMatchObject({ status: "completed", step: 6 });
    expect(result.warnings).toContain("this run had ended after 2 steps; it continues to step 6");
  });

  it("reports inputs that have no content to compare", async () => {
    const given = sft({ model: tinyModel, data: countingData(3) });
    await train(given);
    expect(await train({ ...given, data: countingData(3) })).toMatchObject({
      status: "unchanged",
      notCompared: ["data"],
    });
  });

  it("is refused with other preferences", async () => {
    const pairs = (chosen: string): object[] =>
      rows().map((_, index) => ({ prompt: `day ${index}`, chosen, rejected: "no" }));
    const given: PreferenceTrainOptions = {
      service: place.service,
      model,
      folder: place.file("pairs"),
      data: pairs("yes"),
      maxSteps: 1,
      loraRank: 4,
    };
    await trainOnPreferences(given);
    await expect(trainOnPreferences({ ...given, data: pairs("ja") })).rejects.toThrow(
      /data differs/,
    );
  });

  it("is refused with other prompts of a teacher", async () => {
    const teacher = await place.service.createSamplingClient({ baseModel: model });
    const given = (prompt: string) => ({
      service: place.service,
      model,
      folder: place.file("prompts"),
      datasets: [{ prompts: [prompt, "b"], teacher }],
      maxTokens: 4,
      maxSteps: 1,
    });
    const first = await trainOnPolicy(given("a"));
    expect(first.notCompared).toEqual(["teacher"]);
    await expect(trainOnPolicy(given("c"))).rejects.toThrow(/data differs/);
  });
});

describe("rewards that teach nothing", () => {
  const group = (grade: (text: string) => unknown, size = 2, endsOnLength = false) =>
    problemGroup(
      { prompt: "Tell me something.", grade: grade as never },
      { renderer, size, endsOnLength },
    );

  const rl = (
    grade: (text: string) => unknown,
    more: Partial<RlTrainOptions> = {},
  ): RlTrainOptions => ({
    service: place.service,
    model,
    folder: place.file(`run-${runs++}`),
    dataset: { length: 5, batch: () => [group(grade)] },
    maxTokens: 24,
    learningRate: 1e-3,
    loraRank: 4,
    ...more,
  });

  it("end the run as failed after three steps with errors only, with the first stack", async () => {
    let calls = 0;
    const grade = (): never => {
      calls++;
      throw new RangeError("no such answer");
    };
    const given = rl(grade);
    const warnings: string[] = [];
    const failing = trainByRewards({
      ...given,
      sinks: [{ log: (record) => record.kind === "text" && warnings.push(record.text) }],
    });
    await expect(failing).rejects.toThrow(
      /every episode of 3 steps in a row failed.*RangeError: no such answer\n +at /s,
    );
    expect(calls).toBeGreaterThan(3);
    const first = warnings.findIndex((text) => /an episode failed: RangeError: no such/.test(text));
    expect(first).toBeGreaterThan(-1);
    expect(warnings[first]).toContain("silent-outcomes.test");
    const { metrics } = await readRunFolder(given.folder);
    expect(metrics).toHaveLength(3);
    expect(metrics[0]!.metrics["rollout_errors/RangeError"]).toBeGreaterThan(0);
  });

  it("fail later with the option, and at the end in any case", async () => {
    const grade = (): never => {
      throw new Error("no");
    };
    const given = rl(grade, { maxFailedSteps: 0 });
    await expect(trainByRewards(given)).rejects.toThrow("every episode failed");
    expect((await readRunFolder(given.folder)).metrics).toHaveLength(5);
  });

  it.each<[unknown, string]>([
    [undefined, "grade: must be a finite number, not undefined"],
    [Number.NaN, "grade: must be a finite number, not NaN"],
    ["0.5", 'grade: must be a finite number, not the text "0.5"'],
    [null, "grade: must be a finite number, not null"],
  ])("are refused when they are not numbers: %s", async (value, message) => {
    await expect(trainByRewards(rl(() => value))).rejects.toThrow(message);
  });

  it("are refused as the rewards of a group, too", async () => {
    const graded: EnvironmentGroup = {
      ...group(() => 1),
      rewards: (trajectories) => trajectories.map(() => ({ reward: Number.NaN })),
    };
    const dataset = { length: 5, batch: () => [graded] };
    await expect(trainByRewards(rl(() => 1, { dataset }))).rejects.toThrow(
      "rewards[0].reward: must be a finite number, not NaN",
    );
  });

  it("asynchronous runs fail, too", async () => {
    const mode = { kind: "asynchronous", maxStepsOffPolicy: 1, groupsPerBatch: 1 } as const;
    await expect(trainByRewards(rl(() => undefined, { mode }))).rejects.toThrow(
      /every episode of 3 groups in a row failed/,
    );
  });

  it("cause a warning when they are equal, and the end reports that nothing was learned", async () => {
    const { status, warnings } = await trainByRewards(
      rl(() => 1, { dataset: { length: 2, batch: () => [group(() => 1), group(() => 0)] } }),
    );
    expect(status).toBe("completed");
    expect(warnings).toContainEqual(
      expect.stringMatching(/^step 0: the rewards within all 2 groups were equal/),
    );
    expect(warnings.at(-1)).toMatch(/^nothing was learned: 4 of 4 groups had equal rewards/);
  });

  it("are explained by truncated answers", async () => {
    const dataset = { length: 2, batch: () => [group((text) => text.length, 2, true)] };
    const { warnings } = await trainByRewards(rl(() => 1, { dataset, maxTokens: 1 }));
    expect(warnings).toContain("step 0: every answer was cut at 1 token");
    expect(warnings.at(-1)).toMatch(/nothing was learned: .*100 % of answers were cut at 1 token$/);
  });

  it("a run with a signal has no such warning", async () => {
    const { warnings } = await trainByRewards(
      rl((text) => text.length / 100, {
        dataset: { length: 2, batch: () => [group((t) => t.length, 4)] },
        maxTokens: 64,
      }),
    );
    expect(warnings).toEqual([]);
  });
});

describe("divergence", () => {
  it("ends the run as failed when the loss is not a number, with advice", async () => {
    const given = sft({ model: tinyModel, learningRate: 1e-3, maxSteps: 5 });
    const objective: Objective = {
      lossMetric: "own_loss",
      submit: (training, data) => training.forwardBackward(data, "cross_entropy"),
      metrics: (_data, _pass, { step }) => ({ own_loss: step === 2 ? Number.NaN : 1 }),
    };
    const running = trainBatches(completeLoopOptions(given, { recipeName: "own" }), {
      dataset: countingData(5),
      objective,
      evaluators: [],
      config: {},
    });
    await expect(running).rejects.toThrow(
      "Step 2: own_loss is NaN, so the model has diverged. The learning rate was 0.0006; " +
        "start again in another folder with a tenth of it.",
    );
    expect(readFileSync(`${given.folder}/logs.log`, "utf8")).toContain("[ERROR]");
  });

  it("warns about an absurd rate, and about a loss far above its start", async () => {
    const { warnings } = await train(sft({ learningRate: 3, maxSteps: 8, lrSchedule: "constant" }));
    expect(warnings[0]).toMatch(/^learning rate 3 is so high .* recommended rate .* is 0.0050$/);
    expect(warnings[1]).toMatch(/^step \d: train_mean_nll rose from .*the model may diverge/);
  });

  it("warns about a rate that changes nothing", async () => {
    const { warnings } = await train(sft({ learningRate: 1e-9 }));
    expect(warnings[0]).toMatch(/so low that the model will hardly change/);
  });
});

describe("held-out rows", () => {
  it.each([8, 9])("%i of 8 are refused", async (testSize) => {
    await expect(train(sft({ testSize }))).rejects.toThrow(
      `testSize: ${testSize} leaves no row to train on; the number of rows is 8`,
    );
  });

  it("leave a warning when one row is left to train on", async () => {
    const { warnings } = await train(sft({ testSize: 7 }));
    expect(warnings).toContain("only 1 row is left to train on");
  });
});

describe("small data", () => {
  it("gets enough epochs to learn", async () => {
    const result: RunResult = await train(sft({ maxSteps: undefined, evalEvery: 0, saveEvery: 0 }));
    expect(result).toMatchObject({ status: "completed", totalSteps: 30, warnings: [] });
  });

  it("causes a warning when the run has one step", async () => {
    const { warnings } = await train(sft({ maxSteps: 1 }));
    expect(warnings).toEqual(["1 step: expect no change; raise numEpochs or lower batchSize"]);
  });
});

describe("an option that is needed", () => {
  const missing = (loop: string, name: string, run: () => Promise<unknown>) =>
    it(`${loop} without ${name} is refused`, async () => {
      await expect((async () => run())()).rejects.toThrow(`${name}: is missing`);
    });
  const given = { service: {} as never, model, folder: "nowhere" };
  const data = [{ prompt: "a", completion: "b" }];
  missing("train", "data", () => train(given as never));
  missing("train", "folder", () => train({ ...given, data, folder: undefined as never }));
  missing("train", "service", () => train({ ...given, data, service: undefined as never }));
  missing("training by rewards", "dataset", () => trainByRewards(given as never));
  missing("training on preferences", "data", () => trainOnPreferences(given as never));
  missing("distillation", "datasets", () => trainOnPolicy(given as never));
  missing("evaluate", "task", () => evaluate({} as never));

  it("that names a checkpoint as the model is refused with the option that takes it", async () => {
    await expect(train(sft({ model: "tinker://x/weights/y" }))).rejects.toThrow(
      "model: tinker://x/weights/y is a checkpoint; pass it as loadCheckpointPath",
    );
  });

  it("that says what to do with a run is refused when it is misspelt", async () => {
    await expect(train(sft({ ifExists: "overwrite" as never }))).rejects.toThrow(
      'ifExists: must be "resume", "delete", "fail" or "new"',
    );
  });

  it("that is no teacher is refused by its place", async () => {
    const datasets = [{ prompts: ["a"], teacher: { baseModel: model } as never }];
    await expect(
      trainOnPolicy({ ...given, service: place.service, datasets, maxTokens: 4 }),
    ).rejects.toThrow("datasets[0].teacher: must be a sampling client");
  });

  it("that returns no groups is refused by its batch", async () => {
    const dataset = { length: 2, batch: () => [] };
    await expect(
      trainByRewards({
        ...given,
        service: place.service,
        folder: place.file(`run-${runs++}`),
        dataset,
        maxTokens: 4,
        learningRate: 1e-3,
      }),
    ).rejects.toThrow("dataset.batch(0): must return a list with at least one group");
  });
});

describe("weights to start from", () => {
  it("may be the folder of a run: its last checkpoint", async () => {
    const first = await train(sft());
    const result = await train(sft({ loadCheckpointPath: first.folder }));
    expect(result.status).toBe("completed");
    const { config } = await readRunFolder(result.folder);
    expect(config).toMatchObject({ load_checkpoint_path: first.checkpoint?.statePath });
  });

  it("of a run's folder are found by the client too", async () => {
    const { folder, checkpoint } = await train(sft());
    const { service } = place;
    const options = { prompt: [1, 2, 3], samplingParams: { maxTokens: 4, seed: 1 } };
    const tokens = async (modelPath: string): Promise<number[]> => {
      const sampling = await service.createSamplingClient({ modelPath });
      return [...(await sampling.sample(options)).sequences[0]!.tokens];
    };
    expect(await tokens(folder)).toEqual(await tokens(checkpoint!.samplerPath!));
    const training = await service.createTrainingClientFromState(folder);
    expect((await training.getInfo()).loraRank).toBe(4);
    await expect(
      service.createSamplingClient({ baseModel: "tinker://x/weights/y" }),
    ).rejects.toThrow("baseModel: tinker://x/weights/y are saved weights; pass them as modelPath");
  });

  it("that are no path and no folder of a run are refused", async () => {
    await expect(train(sft({ loadCheckpointPath: "runs/none" }))).rejects.toThrow(
      'loadCheckpointPath: "runs/none" must start with tinker:// or be the folder of a run',
    );
  });
});

describe("an unknown option is refused with the nearest name", () => {
  const unknown = (name: string): never => ({ [name]: 3 }) as never;

  it.each<[string, () => Promise<unknown>, string]>([
    [
      "train",
      () => train(unknown("numEpoch")),
      "numEpoch: unknown option; did you mean numEpochs?",
    ],
    [
      "prepareData",
      () => prepareData(unknown("batch_size")),
      "batch_size: unknown option; did you mean batchSize?",
    ],
    [
      "training on preferences",
      () => trainOnPreferences(unknown("referense")),
      "referense: unknown option; did you mean reference?",
    ],
    [
      "training by rewards",
      () => trainByRewards(unknown("maxToken")),
      "maxToken: unknown option; did you mean maxTokens?",
    ],
    [
      "distillation",
      () => trainOnPolicy(unknown("groupSise")),
      "groupSise: unknown option; did you mean groupSize?",
    ],
    ["evaluate", () => evaluate(unknown("numSample")), "did you mean numSamples?"],
  ])("by %s", async (_, run, message) => {
    await expect((async () => run())()).rejects.toThrow(message);
  });
});

describe("rows that teach nothing or the wrong thing are named", () => {
  const user = { role: "user", content: "Hi" };
  const prepare = (messages: readonly object[], more: object = {}): Promise<unknown> =>
    prepareData({ service: place.service, model, data: [...rows(), { messages, ...more }] });

  it.each<[string, readonly object[], string]>([
    [
      "an empty answer",
      [user, { role: "assistant", content: " " }],
      "messages[1].content: empty answer",
    ],
    [
      "a misspelt role",
      [user, { role: "assistent", content: "Hello" }],
      'messages[1].role: unknown role "assistent"; did you mean "assistant"?',
    ],
    ["no answer", [user], 'no answer to learn: no message has the role "assistant", only user'],
  ])("%s", async (_, messages, problem) => {
    await expect(prepare(messages)).rejects.toThrow(`row 9: ${problem}`);
  });

  it("an untrained answer may be empty, and so may one with a tool call", async () => {
    const call = { id: "1", type: "function", function: { name: "add", arguments: "{}" } };
    await prepare([
      user,
      { role: "assistant", content: "", weight: 0 },
      user,
      { role: "assistant", content: "Hello", weight: 1 },
    ]);
    await prepare([user, { role: "assistant", content: "", tool_calls: [call] }]);
  });

  it("pairs of identical or empty completions", async () => {
    const toOwn = ({ a, b }: { a: string; b: string }): LabeledComparison => ({
      prompt: [user],
      completionA: [{ role: "assistant", content: a }],
      completionB: [{ role: "assistant", content: b }],
      label: "A",
    });
    const prepareOne = (row: object): Promise<unknown> =>
      preparePreferences({ service: place.service, model, data: [row], map: toOwn });
    await expect(prepareOne({ a: "Yes", b: "Yes" })).rejects.toThrow(
      "row 1: both completions are the same after rendering and cutting",
    );
    await expect(prepareOne({ a: "", b: "Yes" })).rejects.toThrow("row 1: a completion is empty");
  });

  it("the default model learns conversations with tools", async () => {
    const call = { id: "1", type: "function", function: { name: "add", arguments: '{"a":1}' } };
    const tools = [{ type: "function", function: { name: "add", parameters: { type: "object" } } }];
    const messages = [
      user,
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", tool_call_id: "1", content: "2" },
      { role: "assistant", content: "It is 2." },
    ];
    const result = await train(sft({ data: [{ messages, tools }], maxSteps: 2 }));
    expect(result.status).toBe("completed");
  });
});
