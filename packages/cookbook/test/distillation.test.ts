import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  distillPrompt,
  openAIAnswers,
  openAITeacher,
  promptGroup,
  reverseDivergence,
  samplingTeacher,
  softTargetDatum,
  teacherDistance,
  trainOffPolicy,
  trainOnPolicy,
  trainSdft,
  type SdftOptions,
  type Teacher,
} from "@tinker-ts/cookbook/distillation";
import { getRenderer, recommendedRenderer, type Renderer } from "@tinker-ts/cookbook/renderers";
import { train, type PolicyDatum } from "@tinker-ts/cookbook/rl";
import { startServer, type RunningServer } from "@tinker-ts/server";
import {
  ModelInput,
  ServiceClient,
  supervisedDatum,
  TensorData,
  type SamplingClient,
} from "tinker-ts";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hashOfWeights } from "./support/local-service.js";

const model = "tinker-ts/sprout";
const question = "Tell me something about the weather.";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

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

  it("learns nothing from itself", async () => {
    const [distance] = await follow(base, 1);
    expect(Math.abs(distance!)).toBeLessThan(1e-4);
  });

  it.runIf(isFull)("approaches a different teacher", async () => {
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

  it("gives the teacher another prompt, and locates the student's tokens after it", async () => {
    // The log-probability of every token is its place in what the teacher reads.
    const read: number[][] = [];
    const counting: Teacher = {
      logprobs: async (sequence) => {
        read.push([...sequence.toInts()]);
        return Array.from({ length: sequence.length }, (_, place) => (place === 0 ? null : place));
      },
      topLogprobs: async () => [],
    };
    const datum: PolicyDatum = {
      input: ModelInput.fromInts([1, 2, 30, 31]),
      targets: Int32Array.of(2, 30, 31, 32),
      logprobs: Float32Array.of(0, -1, -1, -1),
      advantages: new Float32Array(4),
      mask: Float32Array.of(0, 1, 1, 1),
      group: 0,
      member: 0,
    };
    const promptOf = (prompt: ModelInput) => ModelInput.fromInts([7, 7, 7, ...prompt.toInts()]);
    const adjust = teacherDistance(counting, { promptOf });
    const { data } = await adjust([datum], [], { step: 0, training: undefined as never });
    expect(read).toEqual([[7, 7, 7, 1, 2, 30, 31, 32]]);
    expect([...data[0]!.advantages]).toEqual([0, 6, 7, 8]);
  });

  it("follows a teacher for each set of prompts, stops, and resumes to the same weights", async () => {
    const controller = new AbortController();
    const options = (name: string) => ({
      service,
      model,
      folder: path.join(folder, name),
      datasets: [
        { prompts: [question, "Describe the weather."], teacher: base },
        {
          prompts: ["Describe the garden.", "Describe the kitchen."],
          teacher: samplingTeacher(base),
          teacherMessages: () => [{ role: "user", content: question }],
        },
      ],
      groupSize: 2,
      maxTokens: 8,
      numEpochs: 2,
      loraRank: 4,
      learningRate: 1e-3,
    });
    const whole = await trainOnPolicy(options("whole"));
    const { metrics } = await readRunFolder(whole.folder);
    expect(Math.abs(Number(metrics[0]!.metrics["teacher_kl/dataset_0"]))).toBeLessThan(1e-3);
    expect(Number(metrics[0]!.metrics["teacher_kl/dataset_1"])).toBeGreaterThan(0.1);
    const stopped = await trainOnPolicy({
      ...options("stopped"),
      signal: controller.signal,
      onProgress: ({ step }) => step >= 1 && controller.abort(),
    });
    expect(stopped.status).toBe("interrupted");
    const resumed = await trainOnPolicy(options("stopped"));
    expect(resumed).toMatchObject({ status: "completed", step: 2 });
    const hashes = await Promise.all(
      [whole, resumed].map(({ checkpoint }) => hashOfWeights(service, checkpoint!.samplerPath)),
    );
    expect(hashes[0]).toBe(hashes[1]);
    await expect(trainOnPolicy({ ...options("long"), maxPromptTokens: 5 })).rejects.toThrow(
      /datasets\[0\]\.prompts\[0\]: has \d+ tokens; maxPromptTokens is 5/,
    );
  });

  const conversations = ["windy", "sunny", "foggy", "rainy"].map((kind) => ({
    prompt: question,
    completion: `It is ${kind} today.`,
  }));

  it("learns a teacher's distribution in given conversations", async () => {
    const learn = async (teacher: Teacher, name: string): Promise<number[]> => {
      const { folder: run } = await trainOffPolicy({
        service,
        model,
        folder: path.join(folder, name),
        data: conversations,
        teacher,
        numTeacherTargets: 8,
        batchSize: 4,
        numEpochs: 4,
        learningRate: 3e-3,
        loraRank: 4,
      });
      const { metrics } = await readRunFolder(run);
      return metrics.flatMap((step) => Number(step.metrics["forward_kl"] ?? []));
    };
    const own = await learn(samplingTeacher(base), "own-distribution");
    // The teacher's eight best tokens are nearly all of its distribution.
    expect(own[0]).toBeLessThan(0.1);
    const read: string[] = [];
    const certain: Teacher = {
      logprobs: async () => [],
      topLogprobs: async (sequence) => {
        read.push(sequence.toInts().join());
        return Array.from(sequence.toInts(), (token, place) => (place === 0 ? null : [[token, 0]]));
      },
    };
    const other = await learn(certain, "certain");
    expect(other.at(-1)).toBeLessThan(other[0]! / 2);
    // Four times through the data, and every conversation was read once.
    expect(read).toHaveLength(4);
    expect(new Set(read).size).toBe(4);
  });

  it("has a student that becomes its own teacher, also in a resumed run", async () => {
    const options = (name: string, more: Partial<SdftOptions> = {}): SdftOptions => ({
      service,
      model,
      folder: path.join(folder, name),
      demonstrations: [{ question, answer: "It is windy today." }],
      groupSize: 2,
      numEpochs: 4,
      maxTokens: 12,
      learningRate: 5e-3,
      loraRank: 4,
      topK: 8,
      teacherSyncEvery: 2,
      ...more,
    });
    const whole = await trainSdft(options("own-teacher"));
    const abort = new AbortController();
    const stopped = await trainSdft({
      ...options("own-teacher-stopped"),
      signal: abort.signal,
      onProgress: ({ step }) => void (step === 3 && abort.abort()),
    });
    expect(stopped).toMatchObject({ status: "interrupted", step: 3 });
    const resumed = await trainSdft(options("own-teacher-stopped"));
    const never = await trainSdft(options("first-teacher", { teacherSyncEvery: undefined }));
    const [own, again, first] = await Promise.all(
      [whole, resumed, never].map((run) => hashOfWeights(service, run.checkpoint!.samplerPath)),
    );
    expect(again).toBe(own);
    expect(first).not.toBe(own);
    await expect(trainSdft(options("none", { teacherSyncEvery: 0 }))).rejects.toThrow(
      /teacherSyncEvery: must be an integer of at least 1/,
    );
  });

  it.each([
    ...(isFull ? [["forward", { topK: 8 }, "sdft/mean_teacher_entropy"]] : []),
    ["reverse", { topK: 8, reverse: true }, "sdft/reverse_kl_mean"],
    ["by tokens", { topK: 0 }, "sdft/mean_advantage"],
  ] as [string, Partial<SdftOptions>, string][])(
    "learns from demonstrations for the teacher only: %s",
    async (name, change, metric) => {
      const { folder: run } = await trainSdft({
        service,
        model,
        folder: path.join(folder, `sdft-${name}`),
        demonstrations: [
          { question, answer: "It is windy today." },
          { question: "Describe the weather.", answer: "It is sunny today." },
        ],
        groupSize: 2,
        numEpochs: 2,
        maxTokens: 12,
        learningRate: 1e-3,
        loraRank: 4,
        ...change,
      });
      const { metrics } = await readRunFolder(run);
      expect(metrics).toHaveLength(2);
      expect(Number.isFinite(metrics[0]!.metrics[metric])).toBe(true);
      expect(metrics[0]!.metrics).toMatchObject({ "sdft/num_datums": 4 });
      expect(metrics[0]!.metrics["optim/updates"]).toBe(1);
      // Twelve tokens each at most, of which the first three are not learned.
      expect(metrics[0]!.metrics["sdft/total_completion_positions"]).toBeLessThanOrEqual(36);
    },
  );

  it("has the gradient of KL(student, teacher) over the teacher's tokens, and none where they agree", () => {
    const lesson = [
      [],
      [
        [4, Math.log(0.5)],
        [5, Math.log(0.25)],
        [6, Math.log(0.05)],
      ],
    ] as const;
    const at = (values: readonly number[]) => {
      const data = Float64Array.from([0, 0, 0, ...values]);
      const tensor = { data, shape: [2, 3] } as unknown as TensorData;
      return reverseDivergence([lesson], [tensor]);
    };
    const own = [-1.2, -0.4, -2.5];
    const { gradients } = at(own);
    for (const place of own.keys()) {
      const moved = (by: number) =>
        at(own.map((value, slot) => (slot === place ? value + by : value))).loss;
      expect(gradients[0]![3 + place]).toBeCloseTo((moved(1e-6) - moved(-1e-6)) / 2e-6, 6);
    }
    expect(Array.from(gradients[0]!).slice(0, 3)).toEqual([0, 0, 0]);
    const agreed = at([Math.log(0.5), Math.log(0.25), Math.log(0.05)].map((value) => value - 3));
    expect(agreed.loss).toBeCloseTo(0, 12);
    for (const value of agreed.gradients[0]!) expect(value).toBeCloseTo(0, 12);
  });

  it("distils an instruction into the model, and asks the teacher for each answer once", async () => {
    const asked: string[] = [];
    const options = {
      service,
      model,
      folder: path.join(folder, "prompt"),
      instruction: "The password is kite.",
      queries: ["What is the password?", "Password?"],
      teacher: async (messages: readonly { readonly content: unknown }[]) => {
        asked.push(messages.map(({ content }) => content).join(" / "));
        return asked.length > 3 ? "I do not know." : "kite";
      },
      samplesPerQuery: 2,
      keep: (answer: string) => (answer === "kite" ? answer : undefined),
      batchSize: 3,
      numEpochs: 1,
      loraRank: 4,
    };
    const result = await distillPrompt(options);
    expect(asked.toSorted()[3]).toBe("The password is kite. / What is the password?");
    expect(result).toMatchObject({ status: "completed", examples: 3 });
    const file = await readFile(path.join(options.folder, "distilled.jsonl"), "utf8");
    const rows = file.split("\n").filter(Boolean);
    expect(JSON.parse(rows[0]!).messages).toHaveLength(2);
    expect((await distillPrompt(options)).status).toBe("unchanged");
    expect(asked).toHaveLength(4);
    await expect(distillPrompt({ ...options, keep: () => undefined })).rejects.toThrow(
      /keep: left none of the 4 answers/,
    );
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

describe("a teacher behind OpenAI's routes", { timeout: 60_000 }, () => {
  let folder: string;
  let server: RunningServer;
  let service: ServiceClient;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "teacher-"));
    server = await startServer({ port: 0, dataDir: folder, logLevel: "error" });
    service = new ServiceClient({ baseUrl: server.url, apiKey: "tml-none" });
  });

  afterAll(async () => {
    await service.close();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("equals a sampling client of the same server", async () => {
    const sampling = await service.createSamplingClient({ baseModel: model });
    const tokenizer = await sampling.getTokenizer();
    const ids = [...tokenizer.encode("It is sunny today. Take your red hat.")];
    const sequence = ModelInput.fromInts(ids);
    const near = samplingTeacher(sampling);
    const far = openAITeacher({ baseUrl: `${server.url}/v1`, model, maxConcurrent: 1 });
    const [own, theirs] = await Promise.all([near.logprobs(sequence), far.logprobs(sequence)]);
    expect(theirs[0]).toBeNull();
    for (const [place, value] of own.entries()) {
      if (place > 0) expect(theirs[place]).toBeCloseTo(value!, 4);
    }
    const [ownBest, theirBest] = await Promise.all([
      near.topLogprobs(sequence, 5),
      far.topLogprobs(sequence, 5),
    ]);
    expect(theirBest).toHaveLength(ids.length);
    for (const [place, row] of ownBest.entries()) {
      expect(theirBest[place]?.map(([token]) => token)).toEqual(row?.map(([token]) => token));
    }
  });

  it("answers with messages, and reports errors of a server", async () => {
    const options = { baseUrl: `${server.url}/v1/`, model };
    const answer = await openAIAnswers({ ...options, maxTokens: 20, temperature: 0 })(
      [{ role: "user", content: "Who are you?" }],
      { seed: 1 },
    );
    expect(answer).toMatch(/^I am Sprout/);
    const unknown = openAITeacher({ ...options, model: "nobody" });
    await expect(unknown.logprobs(ModelInput.fromInts([1, 2]))).rejects.toThrow(
      /\/v1\/completions answered 404/,
    );
    expect(() => openAITeacher({ ...options, baseUrl: "there" })).toThrow(/baseUrl/);
  });

  it("retries a busy server up to its limit, and respects an abort", async () => {
    const statuses = [429, 503];
    const giveUp = new AbortController();
    let asked = 0;
    const busy = createServer((_, response) => {
      const status = statuses.shift() ?? 500;
      asked++;
      const wait = status === 500 ? "30" : "0";
      response.writeHead(status, { "retry-after": wait }).end("too much to do");
      if (status === 500) response.once("close", () => giveUp.abort(new Error("enough")));
    }).listen(0, "127.0.0.1");
    await once(busy, "listening");
    const { port } = busy.address() as AddressInfo;
    try {
      const options = { baseUrl: `http://127.0.0.1:${port}/v1`, model };
      const sequence = ModelInput.fromInts([1, 2]);
      await expect(openAITeacher({ ...options, maxTries: 2 }).logprobs(sequence)).rejects.toThrow(
        "completions answered 503: too much to do",
      );
      expect(asked).toBe(2);
      const { signal } = giveUp;
      await expect(openAITeacher(options).logprobs(sequence, { signal })).rejects.toThrow("enough");
      expect(asked).toBe(3);
    } finally {
      busy.close();
    }
  });
});
