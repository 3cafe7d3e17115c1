import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import {
  dpo,
  ipo,
  kto,
  loadComparisons,
  PreferenceDataset,
  preparePreferences,
  simpo,
  swapped,
  toComparison,
  toJudged,
  train,
  type PreferenceRow,
  type PreferenceTrainOptions,
  type PreparedPreferences,
} from "@tinker-ts/cookbook/preference";
import { Datum } from "tinker-ts";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LocalPlace, tinyModel } from "./support/local-service.js";
import { wordRenderer } from "./support/word-renderer.js";

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });
const asked = [user("Hi?")];
const [yes, no] = [[assistant("Yes.")], [assistant("No.")]];

describe("a comparison", () => {
  it.each([
    ["texts", { prompt: "Hi?", chosen: "Yes.", rejected: "No." }],
    ["messages", { prompt: asked, chosen: yes, rejected: no }],
    ["whole conversations", { chosen: [...asked, ...yes], rejected: [...asked, ...no] }],
    [
      "a prompt and whole conversations",
      { prompt: "Hi?", chosen: [...asked, ...yes], rejected: [...asked, ...no] },
    ],
    [
      "one text with turns",
      {
        chosen: "\n\nHuman: Hi?\n\nAssistant: Yes.",
        rejected: "\n\nHuman: Hi?\n\nAssistant: No.",
      },
    ],
    [
      "the Python cookbook's form",
      {
        comparison: { prompt_conversation: asked, completion_A: yes, completion_B: no },
        label: "A",
      },
    ],
    ["A and B", { prompt: "Hi?", completion_a: "Yes.", completion_b: "No.", label: "a" }],
    ["responses", { prompt: "Hi?", response_a: "Yes.", response_b: "No.", label: "A" }],
  ])("is read from %s", (_, row) => {
    expect(toComparison(row)).toEqual({
      prompt: asked,
      completionA: yes,
      completionB: no,
      label: "A",
    });
  });

  it("keeps the common beginning of both conversations, and a system prompt", () => {
    const shared = [user("a"), assistant("b"), user("c")];
    const row = { system: "s", chosen: [...shared, ...yes], rejected: [...shared, ...no] };
    expect(toComparison(row).prompt).toEqual([{ role: "system", content: "s" }, ...shared]);
  });

  it("is the same the other way round", () => {
    const row = toComparison({ prompt: "Hi?", chosen: "Yes.", rejected: "No." });
    expect(swapped(row)).toMatchObject({ completionA: no, completionB: yes, label: "B" });
    expect(swapped(swapped(row))).toEqual(row);
    expect(swapped({ ...row, label: "Tie" as const }).label).toBe("Tie");
  });

  it.each([
    [{ prompt: "Hi?", chosen: "Yes." }, /unknown row format with the fields prompt, chosen/],
    [
      { prompt: "Hi?", chosen: "Yes.", rejected: 3 },
      /rejected: expected text or a list of messages, got number/,
    ],
    [
      { prompt: "Hi?", chosen: "Same.", rejected: "Same." },
      /identical completions cannot be ranked/,
    ],
    [{ chosen: yes, rejected: no }, /no prompt/],
    [{ prompt: "Hi?", chosen: [user("x")], rejected: [user("y")] }, /no prompt/],
    [
      { prompt: "Hi?", completion_a: "1", completion_b: "2", label: "C" },
      /label: must be "A", "B" or "Tie", not "C"/,
    ],
    [[], /expected an object/],
  ])("with invalid options is refused with the reason: %j", (row, problem) => {
    expect(() => toComparison(row)).toThrow(problem);
  });

  it("may be a single completion with a label", () => {
    expect(toJudged({ prompt: "Hi?", completion: "Yes.", label: false })).toEqual([
      { prompt: asked, completion: yes, desirable: false },
    ]);
    expect(
      toJudged({ prompt: "Hi?", chosen: "Yes.", rejected: "No." }).map((row) => row.desirable),
    ).toEqual([true, false]);
    expect(() => toJudged({ prompt: "Hi?", completion: "Yes.", label: "good" })).toThrow(
      /label: must be true or false, not "good"/,
    );
  });
});

/** Numbers that go up are chosen, numbers that go down are not. */
function countingRows(count: number): PreferenceRow[] {
  const datum = (first: number, by: number): Datum => {
    const tokens = Array.from({ length: 6 }, (_, at) => first + by * at);
    return new Datum({
      modelInput: tokens.slice(0, -1),
      lossFnInputs: { target_tokens: tokens.slice(1), weights: [0, 1, 1, 1, 1] },
    });
  };
  return Array.from({ length: count }, (_, index) => ({
    prompt: [],
    data: [datum(10 + index, 1), datum(10 + index, -1)],
    desirable: [true, false],
  }));
}

function prepared(count = 6, batchSize = 2): PreparedPreferences {
  const renderer = wordRenderer();
  return {
    dataset: new PreferenceDataset(countingRows(count), { batchSize }),
    test: countingRows(2),
    report: { rows: count, ties: 0, tokens: 0, trainedTokens: 0, truncatedRows: 0 },
    badRows: [],
    renderer,
    tokenizer: renderer.tokenizer as never,
    batchSize,
    files: {},
  };
}

describe("training on preferences on the embedded engine", { timeout: 60_000 }, () => {
  let place: LocalPlace;
  let runs = 0;
  beforeAll(() => {
    place = new LocalPlace();
  });
  afterAll(() => place.close());

  const options = (change: Partial<PreferenceTrainOptions> = {}): PreferenceTrainOptions => ({
    service: place.service,
    model: tinyModel,
    folder: place.file(`run-${runs++}`),
    data: prepared(),
    numEpochs: 2,
    learningRate: 1e-2,
    loraRank: 4,
    ...change,
  });
  const metricsOf = async (folder: string) =>
    (await readRunFolder(folder)).metrics.map(({ metrics }) => metrics);

  it("begins at ln 2 and learns the preference, also on held-out rows", async () => {
    const given = options({ evalEvery: 2 });
    const result = await train(given);
    const metrics = await metricsOf(given.folder);
    expect(metrics[0]!["dpo_loss"]).toBeCloseTo(Math.LN2, 4);
    expect(metrics[0]).toMatchObject({ num_pairs: 2, num_sequences: 4, num_tokens: 20 });
    for (const name of ["accuracy", "margin", "chosen_reward", "rejected_reward"]) {
      expect(metrics[0]![name], name).toBeTypeOf("number");
    }
    expect(metrics[5]!["margin"]).toBeGreaterThan(0.05);
    expect(metrics[5]!["chosen_reward"]).toBeGreaterThan(Number(metrics[5]!["rejected_reward"]));
    expect(metrics[0]!["test/dpo_loss"]).toBeCloseTo(Math.LN2, 4);
    expect(result.evaluation["test/accuracy"]).toBe(1);
    expect(result.evaluation["test/dpo_loss"]).toBeLessThan(Math.LN2);
  });

  it("asks the reference once per sequence, and never a trained model", async () => {
    const calm = options();
    const whole = await train(calm);
    const cache = path.join(calm.folder, "reference_logprobs.jsonl");
    const lines = readFileSync(cache, "utf8").split("\n").filter(Boolean);
    // Six pairs and two for the test, the latter among the former.
    expect(lines).toHaveLength(12);

    const stopped = options();
    const controller = new AbortController();
    const first = await train({
      ...stopped,
      signal: controller.signal,
      onProgress: ({ step }) => step >= 3 && controller.abort(),
    });
    expect(first.status).toBe("interrupted");
    const stoppedCache = path.join(stopped.folder, "reference_logprobs.jsonl");
    const before = readFileSync(stoppedCache, "utf8");
    writeFileSync(stoppedCache, `${before}{"key":"cut of`);
    const second = await train(stopped);
    expect(second).toMatchObject({ status: "completed", step: 6 });
    const sameWeights = await place.weightsOf(whole.checkpoint!.samplerPath);
    expect(await place.weightsOf(second.checkpoint!.samplerPath)).toBe(sameWeights);

    const lost = options();
    const again = new AbortController();
    await train({
      ...lost,
      signal: again.signal,
      onProgress: ({ step }) => step >= 3 && again.abort(),
    });
    rmSync(path.join(lost.folder, "reference_logprobs.jsonl"));
    await train(lost);
    const [calmMetrics, lostMetrics] = [await metricsOf(calm.folder), await metricsOf(lost.folder)];
    expect(lostMetrics[5]!["margin"]).toBeCloseTo(Number(calmMetrics[5]!["margin"]), 4);
  });

  it("compares with the weights it begins with", async () => {
    const first = await train(options());
    const given = options({ loadCheckpointPath: first.checkpoint!.statePath });
    await train(given);
    const metrics = await metricsOf(given.folder);
    expect(metrics[0]!["dpo_loss"]).toBeCloseTo(Math.LN2, 4);
    const other = options({
      loadCheckpointPath: first.checkpoint!.statePath,
      reference: tinyModel,
    });
    await train(other);
    expect((await metricsOf(other.folder))[0]!["margin"]).toBeGreaterThan(0.05);
  });

  const single = (): PreparedPreferences => {
    const rows = countingRows(6).flatMap(({ data }) =>
      data.map((datum, at) => ({ prompt: [], data: [datum], desirable: [at === 0] })),
    );
    const batchSize = 4;
    return { ...prepared(), dataset: new PreferenceDataset(rows, { batchSize }), test: [] };
  };

  it.each([
    ["dpo", dpo(), prepared],
    ["ipo", ipo(), prepared],
    ["simpo", simpo(), prepared],
    ["kto", kto({ beta: 1 }), single],
  ] as const)(
    "%s makes the chosen more and the rejected less probable",
    async (name, loss, data) => {
      const given = options({ loss, data: data(), numEpochs: 3 });
      await train(given);
      const metrics = await metricsOf(given.folder);
      const steps = metrics.filter((step) => `${name}_loss` in step);
      const [first, last] = [steps[0]!, steps.at(-1)!];
      expect(last["margin"]).toBeGreaterThan(Number(first["margin"]) + 0.02);
      expect(last["rejected_reward"]).toBeLessThan(Number(first["rejected_reward"]));
    },
  );

  it("reads a file of comparisons, skips ties, and names invalid rows", async () => {
    const file = place.file("pairs.jsonl");
    const rows: object[] = [
      { prompt: "Describe the weather.", chosen: "It is sunny.", rejected: "It is rainy." },
      { prompt: "Hi?", completion_a: "Yes.", completion_b: "No.", label: "Tie" },
      { prompt: "Hi?", completion_a: "Yes.", completion_b: "No.", label: "B" },
    ];
    writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const common = { service: place.service, model: "tinker-ts/sprout", batchSize: 2 };
    const { dataset, report, renderer } = await preparePreferences({ ...common, data: file });
    expect(report).toMatchObject({ rows: 2, ties: 1 });
    const [chosen, rejected] = dataset.rows[1]!.data;
    const textOf = ({ modelInput }: Datum): string =>
      renderer.tokenizer.decode(modelInput.toInts());
    expect(textOf(chosen!)).toContain("No.");
    expect(textOf(rejected!)).toContain("Yes.");
    const { data } = chosen!.lossFnInputs["weights"]!;
    expect(new Set(Array.from(data as Float32Array))).toEqual(new Set([0, 1]));

    writeFileSync(file, `${JSON.stringify(rows[0])}\n{"prompt": "Hi?"}\n{broken\n`);
    await expect(preparePreferences({ ...common, data: file })).rejects.toThrow(
      /pairs\.jsonl:2: unknown row format.*pairs\.jsonl:3/,
    );
    const skipped = await preparePreferences({
      ...common,
      data: file,
      batchSize: 1,
      badRows: "skip",
    });
    expect(skipped.report.rows).toBe(1);
    expect(skipped.badRows.map(({ place: where }) => where.replace(/^.*\//, ""))).toEqual([
      "pairs.jsonl:2",
      "pairs.jsonl:3",
    ]);
    const { rows: comparisons } = await loadComparisons([rows[2]]);
    expect(comparisons[0]).toMatchObject({ label: "B", prompt: asked });
    await expect(preparePreferences({ ...common, data: [rows[1]] })).rejects.toThrow(/only ties/);
  });
});
