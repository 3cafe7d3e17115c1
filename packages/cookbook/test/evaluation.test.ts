import { appendFileSync, readFileSync } from "node:fs";
import {
  evaluate,
  exactMatch,
  exactMatchEvaluator,
  includesMatch,
  jsonSchemaMatch,
  modelJudge,
  numericMatch,
  passAtK,
  regexMatch,
  runEvaluators,
  shareInterval,
  type Answer,
  type EvalTask,
  type Grader,
} from "@tinker-ts/cookbook/evaluation";
import { getRenderer, type Renderer } from "@tinker-ts/cookbook/renderers";
import type { SamplingClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LocalPlace, tinyModel } from "./support/local-service.js";

let place: LocalPlace;
let sampling: SamplingClient;
let renderer: Renderer;
let brief: Renderer;
let folders = 0;

beforeAll(async () => {
  place = new LocalPlace();
  sampling = await place.service.createSamplingClient({ baseModel: tinyModel });
  renderer = await getRenderer("role_colon", await sampling.getTokenizer());
  // The model is too small to end its answers; every token ends one here.
  brief = {
    ...renderer,
    tokenizer: renderer.tokenizer,
    stopSequences: Array.from({ length: 310 }, (_, id) => id),
    buildGenerationPrompt: (messages) => renderer.buildGenerationPrompt(messages),
    parseResponse: (tokens) => renderer.parseResponse(tokens),
  };
});
afterAll(() => place.close());

const answer = (text: string): Answer => ({
  text,
  message: { role: "assistant", content: text },
  termination: "stop_sequence",
});
const example = (wanted: unknown) => ({
  messages: [{ role: "user", content: "?" }],
  answer: wanted,
});

describe("graders", () => {
  it.each<[string, Grader, string, unknown, number]>([
    ["exact", exactMatch(), " yes\n", "yes", 1],
    ["exact", exactMatch(), "Yes", "yes", 0],
    ["exact, any case", exactMatch({ ignoreCase: true }), "Yes", "yes", 1],
    ["includes", includesMatch(), "It is Paris.", "paris", 1],
    ["includes", includesMatch(), "It is Rome.", "paris", 0],
    ["number", numericMatch(), "First 3, then 1,234.50", 1234.5, 1],
    ["number", numericMatch(), "about 3.2", "3.1", 0],
    ["number within a tolerance", numericMatch({ tolerance: 0.2 }), "about 3.2", "3.1", 1],
    ["number that is not there", numericMatch(), "none", 1, 0],
    ["pattern of the example", regexMatch(), "abc42", "[a-z]+\\d+", 1],
    ["pattern with a group", regexMatch("answer: (\\w+)"), "The answer: B", "B", 1],
    ["pattern with a group", regexMatch("answer: (\\w+)"), "The answer: C", "B", 0],
  ])("%s", async (_, grader, text, wanted, reward) => {
    expect((await grader(answer(text), example(wanted))).reward).toBe(reward);
  });

  it("JSON by a schema, also in a fence", async () => {
    const grade = await jsonSchemaMatch({
      type: "object",
      required: ["a"],
      properties: { a: { type: "number" } },
    });
    expect(await grade(answer('```json\n{"a": 1}\n```'), example(null))).toMatchObject({
      reward: 1,
      metrics: { is_json: 1 },
    });
    expect(await grade(answer('{"a": "x"}'), example(null))).toMatchObject({
      reward: 0,
      metrics: { is_json: 1 },
      logs: { problem: "data/a must be number" },
    });
    expect(await grade(answer("no"), example(null))).toMatchObject({
      reward: 0,
      metrics: { is_json: 0 },
    });
  });

  it("a model as judge reads question, expected answer and answer", async () => {
    const judge = modelJudge({
      sampling,
      renderer,
      prompt: "{question}|{wanted}|{answer}|{answer}",
      accepts: /[\s\S]*/,
      maxTokens: 4,
    });
    const grade = await judge(answer("$& {wanted}"), {
      messages: [{ role: "user", content: "Q" }],
      answer: "W",
    });
    expect(grade.reward).toBe(1);
    expect(grade.logs?.["judge"]).toBeTypeOf("string");
  });
});

describe("a task", () => {
  const task = (grader: EvalTask["grader"], count = 5): EvalTask => ({
    name: "tiny",
    grader,
    examples: Array.from({ length: count }, (_, index) => ({
      messages: [{ role: "user", content: `question ${index}` }],
      answer: String(index),
    })),
  });
  const settings = () => ({
    sampling,
    renderer: brief,
    maxTokens: 3,
    folder: place.file(`eval-${folders++}`),
  });
  const evenIsRight: Grader = (_, { answer: wanted }) => ({
    reward: Number(wanted) % 2 === 0 ? 1 : 0,
    metrics: { seen: 1 },
  });
  const linesOf = (folder: string): Record<string, unknown>[] =>
    readFileSync(`${folder}/tiny/trajectories.jsonl`, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as never);

  it("is reported as a score with an interval, and written to files", async () => {
    const given = settings();
    const progress: number[] = [];
    const result = await evaluate({
      ...given,
      task: task(evenIsRight),
      onProgress: ({ done }) => progress.push(done),
    });
    expect(result).toMatchObject({
      score: 0.6,
      numExamples: 5,
      numCorrect: 3,
      numErrors: 0,
      metrics: { seen: 1 },
    });
    expect(result.interval[0]).toBeLessThan(0.6);
    expect(progress).toEqual([1, 2, 3, 4, 5]);
    const saved = JSON.parse(readFileSync(`${given.folder}/tiny/result.json`, "utf8")) as object;
    expect(saved).toMatchObject({
      name: "tiny",
      score: 0.6,
      num_examples: 5,
      num_correct: 3,
      pass_at_k: {},
    });
    const [line] = linesOf(given.folder);
    expect(line).toMatchObject({ benchmark: "tiny", error: null });
    expect(line!["example_id"]).toMatch(/^tiny_[0-9a-f]{12}$/);
    expect((line!["turns"] as { role: string }[]).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
    ]);
  });

  it("resumes after a crash: only failed and missing examples are repeated", async () => {
    const given = settings();
    const asked: string[] = [];
    const failing: Grader = (_, { answer: wanted }) => {
      asked.push(String(wanted));
      if (wanted === "3") throw new Error("grader broke");
      return { reward: 1 };
    };
    const first = await evaluate({ ...given, task: task(failing), maxExamples: 4 });
    expect(first).toMatchObject({ numErrors: 1, numCorrect: 3, score: 0.75, scoreCompleted: 1 });
    appendFileSync(`${given.folder}/tiny/trajectories.jsonl`, '{"idx": 9, "exa');
    asked.length = 0;
    const second = await evaluate({ ...given, task: task(() => ({ reward: 1 })) });
    expect(second).toMatchObject({ numErrors: 0, numCorrect: 5 });
    const third = await evaluate({ ...given, task: task(failing) });
    expect(asked).toEqual([]);
    expect(third).toMatchObject({ numCorrect: 5 });
  });

  it("counts answers that were cut off, and prompts that do not fit", async () => {
    const cut = await evaluate({ ...settings(), renderer, task: task(() => ({ reward: 1 })) });
    expect(cut).toMatchObject({ numTruncated: 5, numCorrect: 0, score: 0, scoreCompleted: 0 });
    expect(cut).toMatchObject({ numThinkingCutOff: 0 });
    const full = await evaluate({
      ...settings(),
      contextWindow: 1,
      task: task(() => ({ reward: 1 })),
    });
    expect(full).toMatchObject({ numTruncated: 5, score: 0, metrics: { context_overflow: 1 } });
  });

  it("counts answers that are empty because the model thought until the limit", async () => {
    const thinking: Renderer = {
      ...renderer,
      tokenizer: renderer.tokenizer,
      stopSequences: renderer.stopSequences,
      buildGenerationPrompt: (messages) =>
        renderer.buildGenerationPrompt(messages, { prefill: "<think>" }),
      parseResponse: (tokens) => renderer.parseResponse(tokens),
    };
    const options = { ...settings(), renderer: thinking, task: task(() => ({ reward: 1 })) };
    expect(await evaluate(options)).toMatchObject({ numTruncated: 5, numThinkingCutOff: 5 });
  });

  it("a grader that never ends is an error of its example", async () => {
    const stuck: Grader = (_, { answer: wanted }) =>
      wanted === "1" ? new Promise(() => {}) : { reward: 1 };
    const result = await evaluate({ ...settings(), timeoutMs: 300, task: task(stuck, 3) });
    expect(result).toMatchObject({ numErrors: 1, numCorrect: 2 });
    expect(result.attempts[1]?.[0]?.error).toBe("took longer than 300 ms");
  });

  it("limits the number of concurrent examples, and ends with the signal", async () => {
    let running = 0;
    let most = 0;
    const slow: Grader = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return { reward: 1 };
    };
    await evaluate({ ...settings(), task: task(slow, 8), concurrency: 2 });
    expect(most).toBeLessThanOrEqual(2);
    await expect(
      evaluate({ ...settings(), task: task(slow), signal: AbortSignal.abort() }),
    ).rejects.toThrow("abort");
  });

  it("with several answers per example reports pass@k; the same seed gives the same answers", async () => {
    const given = { ...settings(), temperature: 1, numSamples: 3, seed: 7 };
    const byText: Grader = ({ text }) => ({ reward: text.length % 2 });
    const first = await evaluate({ ...given, task: task(byText) });
    expect([...first.passAtK.keys()]).toEqual([1, 3]);
    expect(first.passAtK.get(1)).toBeCloseTo(first.score);
    expect(first.passAtK.get(3)!).toBeGreaterThanOrEqual(first.passAtK.get(1)!);
    const second = await evaluate({
      ...given,
      folder: place.file(`eval-${folders++}`),
      task: task(byText),
    });
    expect(second.attempts.map((made) => made.map(({ turns }) => turns))).toEqual(
      first.attempts.map((made) => made.map(({ turns }) => turns)),
    );
    const texts = first.attempts[0]!.map(({ turns }) => turns.at(-1)?.content);
    expect(new Set(texts).size).toBeGreaterThan(1);
  });

  it("of choices selects the most probable one", async () => {
    const choices = ["red", "green", "blue"];
    const messages = [{ role: "user", content: "colour?" }];
    const result = await evaluate({
      ...settings(),
      task: {
        name: "tiny",
        grader: "choice",
        examples: choices.map((wanted, index) => ({
          id: String(index),
          messages,
          choices,
          answer: wanted,
        })),
      },
    });
    expect(result.numCorrect).toBe(1);
    const prompt = [...renderer.buildGenerationPrompt(messages).toInts()];
    const scores = await Promise.all(
      choices.map(async (choice) => {
        const tokens = [...renderer.tokenizer.encode(choice, { addSpecialTokens: false })];
        const logprobs = (await sampling.computeLogprobs([...prompt, ...tokens])).slice(
          prompt.length,
        );
        return logprobs.reduce<number>((sum, logprob) => sum + logprob!, 0) / tokens.length;
      }),
    );
    expect(result.attempts[0]?.[0]?.turns.at(-1)?.content).toBe(
      choices[scores.indexOf(Math.max(...scores))],
    );
  });

  it("is an evaluator of a training run", async () => {
    const training = await place.service.createLoraTrainingClient({
      baseModel: tinyModel,
      rank: 2,
    });
    const conversations = [
      {
        messages: [
          { role: "user", content: "a" },
          { role: "assistant", content: "b" },
        ],
      },
    ];
    const metrics = await runEvaluators(
      [exactMatchEvaluator(conversations, { renderer, maxTokens: 2 })],
      { training, step: 0 },
    );
    expect(Object.keys(metrics)).toEqual(
      expect.arrayContaining([
        "eval/exact/score",
        "eval/exact/num_correct",
        "eval/exact/num_examples",
        "eval/exact/num_errors",
      ]),
    );
  });
});

it("pass@k is the share of draws with a right one among them", () => {
  for (let n = 1; n <= 8; n++) {
    for (let c = 0; c <= n; c++) {
      for (let k = 1; k <= n; k++) {
        let draws = 0;
        let hits = 0;
        for (let set = 0; set < 2 ** n; set++) {
          const members = Array.from({ length: n }, (_, index) => index).filter(
            (index) => (set >> index) & 1,
          );
          if (members.length !== k) continue;
          draws++;
          if (members.some((index) => index < c)) hits++;
        }
        expect(passAtK(n, c, k)).toBeCloseTo(hits / draws, 10);
      }
    }
  }
});

it("intervals are Wilson's", () => {
  const [low, high] = shareInterval(8, 10);
  expect(low).toBeCloseTo(0.4902, 4);
  expect(high).toBeCloseTo(0.9433, 4);
  expect(shareInterval(0, 20)[0]).toBe(0);
  expect(shareInterval(0, 0)).toEqual([0, 1]);
});
