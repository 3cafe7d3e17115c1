import { fileURLToPath } from "node:url";
import {
  APIConnectionError,
  ArgumentError,
  loadTokenizer,
  RequestFailedError,
  ResultError,
  type ClientEvent,
  type SamplingClient,
  type ServiceClientOptions,
} from "tinker-ts";
import { describe, expect, vi } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, drop, hang, json } from "../support/scripted-server.js";
import { describeDialects, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

const fixture = fileURLToPath(new URL("../fixtures/tokenizer", import.meta.url));

const open = async (
  service: FakeService,
  options: ServiceClientOptions = {},
): Promise<SamplingClient> => {
  const sampling = await service.client(options).createSamplingClient({ baseModel: "m" });
  service.clock.sleeps.length = 0;
  return sampling;
};

const samples = (service: FakeService) => service.server.requestsTo("sample");
const seqIds = (service: FakeService) => samples(service).map(({ json: body }) => body?.["seq_id"]);

describeDialects(() => {
  describe("a sample", () => {
    it("has texts of the given tokenizer, decoded once and only when read", async ({ service }) => {
      const tokenizer = await loadTokenizer(fixture);
      using decode = vi.spyOn(tokenizer, "decode");
      const sampling = await open(service);
      const { sequences } = await sampling.sample({ prompt: [1], tokenizer });
      expect(JSON.parse(JSON.stringify(sequences[0]))).not.toHaveProperty("text");
      expect(structuredClone(sequences[0])).not.toHaveProperty("text");
      expect(decode).not.toHaveBeenCalled();
      const texts = [sequences[0]!.text, sequences[0]!.text];
      expect(decode).toHaveBeenCalledOnce();
      const expected = tokenizer.decode([7, 8], { skipSpecialTokens: true });
      expect(expected).not.toBe("");
      expect(texts).toEqual([expected, expected]);
      const client = service.client();
      const named = await client.sample({ baseModel: "m", prompt: [1], tokenizer });
      expect(named.sequences[0]!.text).toBe(expected);
    });

    it.for([
      [{ topkSampleLogprobs: -1 }, "topkSampleLogprobs"],
      [{ promptAltTokensK: 0.5 }, "promptAltTokensK"],
      [{ promptLogprobsLastN: 2 }, "goes with includePromptLogprobs"],
      [{ includePromptLogprobs: true, promptLogprobsLastN: 0 }, "promptLogprobsLastN"],
      [{ targetPromptLogprobs: { data: Float32Array.of(1), shape: [1, 1] } }, "must be int64"],
      [{ targetPromptLogprobs: { data: Int32Array.of(1), shape: [1] } }, "must be int64"],
    ] as const)(
      "is refused with scores %j before it is sent",
      async ([options, text], { service }) => {
        const sampling = await open(service);
        expect(() => sampling.sample({ prompt: [1, 2], ...options })).toThrow(text);
        expect(samples(service)).toEqual([]);
      },
    );

    it.for([
      { topkSampleLogprobs: 1 },
      { promptAltTokensK: 1 },
      { targetPromptLogprobs: { data: Int32Array.of(1), shape: [1, 1] } },
    ] as const)("fails if a server ignores %j", async (options, { service }) => {
      const sampling = await open(service);
      const [name] = Object.keys(options);
      const sampled = sampling.sample({ prompt: [1, 2], ...options });
      await expect(sampled).rejects.toThrow(`lacks what ${name} asks for`);
      await expect(sampled).rejects.toBeInstanceOf(ResultError);
      expect(samples(service)).toHaveLength(1);
    });

    it("is written as before without scores", async ({ service }) => {
      const sampling = await open(service);
      await sampling.sample({ prompt: [1], topkSampleLogprobs: 0, promptAltTokensK: 0 });
      const body = samples(service)[0]!.json!;
      expect(Object.keys(body).toSorted()).toEqual([
        "num_samples",
        "prompt",
        "prompt_logprobs",
        "sampling_params",
        "sampling_session_id",
        "seq_id",
        "topk_prompt_logprobs",
        "type",
      ]);
    });

    it("has no texts and loads no tokenizer if none is known", async ({ service }) => {
      const sampling = await open(service);
      const { sequences } = await sampling.sample({ prompt: [1] });
      expect("text" in sequences[0]!).toBe(false);
      expect(service.server.requestsTo("getTokenizer")).toEqual([]);
      expect(service.server.requestsTo("getSampler")).toEqual([]);
    });

    it("is refused with an invalid tokenizer, such as a promise", async ({ service }) => {
      const sampling = await open(service);
      const tokenizer = loadTokenizer(fixture) as never;
      expect(() => sampling.sample({ prompt: [1], tokenizer })).toThrow(/tokenizer.*await/);
      expect(() => sampling.stream({ prompt: [1], tokenizer })).toThrow(ArgumentError);
      expect(samples(service)).toEqual([]);
    });

    it("is requested with defaults filled in", async ({ service }) => {
      const sampling = await open(service);
      await sampling.sample({ prompt: [1, 2], samplingParams: { maxTokens: 3, stop: ["\n"] } });
      const [seen] = samples(service);
      expect(seen!.json).toEqual({
        num_samples: 1,
        prompt: { chunks: [{ tokens: [1, 2], type: "encoded_text" }] },
        sampling_params: { max_tokens: 3, stop: ["\n"], temperature: 1, top_k: -1, top_p: 1 },
        sampling_session_id: "session-0:sample:0",
        seq_id: 0,
        prompt_logprobs: false,
        topk_prompt_logprobs: 0,
        type: "sample",
      });
      expect(seen!.headers["x-tinker-sampling-backpressure"]).toBe("1");
    });

    it("of logprobs requests one token and returns those of the prompt", async ({ service }) => {
      const sampling = await open(service);
      expect(await sampling.computeLogprobs([1, 2])).toEqual([null, -2]);
      expect(samples(service)[0]!.json).toMatchObject({
        num_samples: 1,
        prompt_logprobs: true,
        sampling_params: { max_tokens: 1 },
      });
      service.server.script("sample", service.accept("SampleResponse", { sequences: [] }));
      await expect(sampling.computeLogprobs([1])).rejects.toBeInstanceOf(ResultError);
    });

    it.for([
      [{ prompt: [1], numSamples: 0 }, "numSamples"],
      [{ prompt: [] as number[] }, "prompt"],
      [{ prompt: [1], numSamples: 1.5 }, "numSamples"],
      [{ prompt: { chunks: [] } }, "prompt"],
      [{ prompt: [1], topkPromptLogprobs: -1 }, "topkPromptLogprobs"],
      [{ prompt: [1], samplingParams: { temperature: -1 } }, "samplingParams.temperature"],
      [{ prompt: [1], samplingParams: { maxTokens: 0 } }, "samplingParams.maxTokens"],
      [{ prompt: [1], timeoutMs: 0 }, "timeoutMs"],
    ] as const)("%j is refused before anything is sent", async ([options, field], { service }) => {
      const sampling = await open(service);
      expect(() => sampling.sample(options)).toThrow(ArgumentError);
      expect(() => sampling.sample(options)).toThrow(new RegExp(`^${field}: `));
      expect(samples(service)).toEqual([]);
    });
  });

  describe("429 on a sample", () => {
    it("is retried with the same number", async ({ service }) => {
      const sampling = await open(service);
      service.server.script("sample", bare(429), bare(429));
      const future = sampling.sample({ prompt: [1] });
      await future;
      expect(seqIds(service)).toEqual([0, 0, 0]);
      expect(service.clock.sleeps).toEqual([1000, 1000]);
      expect(future.attempts).toMatchObject([{ status: 429, delayMs: 1000 }, { status: 429 }]);
    });

    it("that does not end is logged, reported to listeners and quoted by the timeout", async ({
      service,
    }) => {
      const events: ClientEvent[] = [];
      const client = service.client({ onEvent: (event) => events.push(event) });
      const sampling = await client.createSamplingClient({ baseModel: "m" });
      service.server.handle("sample", () => json({ error: "the queue is full" }, 429));
      const future = sampling.sample({ prompt: [1], timeoutMs: 30_000 });
      await expect(future).rejects.toThrow(/held back because .*the queue is full/);
      expect(future.attempts.length).toBeGreaterThan(20);
      expect(service.log.filter((text) => text.startsWith("warn"))).toEqual([
        expect.stringMatching(/^warn sample keeps failing.*queue is full/),
      ]);
      const retries = events.filter(({ type }) => type === "retry");
      expect(retries[0]).toMatchObject({ endpoint: "sample", by: "sample", status: 429 });
    });

    it("is retried after the server's retry-after", async ({ service }) => {
      const sampling = await open(service);
      service.server.script("sample", bare(429, { "retry-after": "2.5" }));
      await sampling.sample({ prompt: [1] });
      expect(service.clock.now()).toBe(2500);
    });

    it("holds back longer for large prompts", async ({ service }) => {
      const sampling = await open(service);
      service.server.script("sample", bare(429));
      await sampling.sample({ prompt: new Int32Array(20_000) });
      expect(service.clock.sleeps).toEqual([1000, 1000, 1000, 1000, 1000]);
    });

    it("limits dispatch to ten at a time for a while afterwards", async ({ service }) => {
      const sampling = await open(service);
      service.server.script("sample", bare(429));
      await sampling.sample({ prompt: [1] });
      // The backoff was a moment ago: accepted requests beyond ten wait for the others.
      let release = (): void => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      service.server.handle("sample", async () => {
        await held;
        return service.accept("SampleResponse", { sequences: [] });
      });
      const before = samples(service).length;
      const futures = Array.from({ length: 30 }, () => sampling.sample({ prompt: [1] }));
      await service.server.until(() => samples(service).length === before + 10);
      await settle(20);
      expect(samples(service).length).toBe(before + 10);
      release();
      await Promise.all(futures);
    });

    it("counts bytes twentyfold while the backoff is recent", async ({ service }) => {
      service.flags["sample_dispatch_bytes_semaphore_size"] = 150;
      const sampling = await open(service);
      service.server.script("sample", bare(429));
      await sampling.sample({ prompt: [1] });
      let release = (): void => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      service.server.handle("sample", async () => {
        await held;
        return service.accept("SampleResponse", { sequences: [] });
      });
      // One token counts as 10 bytes, times 20: the first takes the balance below zero.
      const futures = Array.from({ length: 3 }, () => sampling.sample({ prompt: [1] }));
      const before = samples(service).length;
      await service.server.until(() => samples(service).length === before + 1);
      await settle(20);
      expect(samples(service)).toHaveLength(before + 1);
      release();
      await Promise.all(futures);
    });
  });

  describe("402 on a sample", () => {
    it("is like 429 while the billing pause lasts", async ({ service }) => {
      const sampling = await open(service);
      service.server.script("sample", json({ detail: "pay" }, 402));
      await sampling.sample({ prompt: [1] });
      expect(seqIds(service)).toEqual([0, 0]);
      expect(service.clock.sleeps).toEqual([1000]);
    });
  });

  describe("limits", () => {
    it("let 400 be in dispatch at once", async ({ service }) => {
      const sampling = await open(service);
      let release = (): void => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      service.server.handle("sample", async () => {
        await held;
        return service.accept("SampleResponse", { sequences: [] });
      });
      service.clock.isManual = true;
      const futures = Array.from({ length: 500 }, () => sampling.sample({ prompt: [1] }));
      // Unanswered requests are parked after a moment, which lets the next ones go.
      while (samples(service).length < 400) {
        await settle(5);
        await service.clock.advance(100);
      }
      await settle(10);
      await service.clock.advance(1_000);
      expect(samples(service)).toHaveLength(400);
      expect(futures.filter(({ state }) => state === "queued")).toHaveLength(500);
      release();
      service.clock.isManual = false;
      await Promise.all(futures);
      expect(new Set(seqIds(service)).size).toBe(500);
    });

    it("are those of the server's flags", async ({ service }) => {
      service.flags["sample_max_concurrent_requests"] = 3;
      const sampling = await open(service);
      service.server.handle("retrieveFuture", () => hang);
      const futures = Array.from({ length: 5 }, () => sampling.sample({ prompt: [1] }));
      await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 3);
      await settle(20);
      expect(samples(service)).toHaveLength(3);
      for (const future of futures) future.cancel();
      await Promise.allSettled(futures);
    });

    it("release everything when waiting calls are cancelled", async ({ service }) => {
      service.flags["sample_dispatch_bytes_semaphore_size"] = 5;
      service.flags["sample_max_concurrent_requests"] = 800;
      const sampling = await open(service);
      service.server.script("sample", hang);
      const controller = new AbortController();
      // One is being sent, others wait for bytes, for a slot in dispatch and for a turn.
      const futures = Array.from({ length: 900 }, () =>
        sampling.sample({ prompt: [1], signal: controller.signal }),
      );
      await service.server.until(() => samples(service).length === 1);
      controller.abort();
      await Promise.allSettled(futures);
      // All slots are free again: as many requests as before are in dispatch at once.
      const before = samples(service).length;
      service.server.handle("sample", async () => {
        await service.server.until(() => samples(service).length === before + 50);
        return service.accept("SampleResponse", { sequences: [] });
      });
      const prompt = { chunks: [{ location: "", format: "png" as const }] };
      await Promise.all(Array.from({ length: 50 }, () => sampling.sample({ prompt })));
    });

    it("release everything when calls are cancelled at any point", async ({ service }) => {
      service.flags["sample_dispatch_bytes_semaphore_size"] = 5;
      service.flags["sample_max_concurrent_requests"] = 4;
      const sampling = await open(service);
      for (let rounds = 0; rounds < 25; rounds++) {
        const controller = new AbortController();
        const futures = Array.from({ length: 8 }, () =>
          sampling.sample({ prompt: [1, 2, 3], signal: controller.signal }),
        );
        await settle(rounds % 12);
        controller.abort();
        await Promise.allSettled(futures);
      }
      await Promise.all(Array.from({ length: 10 }, () => sampling.sample({ prompt: [1] })));
    });
  });

  describe("a sample that fails", () => {
    it.for([["an expired result", bare(410)]] as const)(
      "through %s is retried under a new number",
      async ([, reply], { service }) => {
        const sampling = await open(service);
        service.server.script("retrieveFuture", reply);
        const future = sampling.sample({ prompt: [1] });
        await future;
        expect(seqIds(service)).toEqual([0, 1]);
        expect(service.clock.sleeps).toEqual([375]);
        expect(future.attempts).toMatchObject([{ status: 410, delayMs: 375 }]);
        expect(future.status.requestIds).toHaveLength(2);
      },
    );

    it("to be submitted keeps its number in the outer loop", async ({ service }) => {
      const sampling = await open(service);
      service.server.script("sample", bare(503), drop("before"));
      await sampling.sample({ prompt: [1] });
      expect(seqIds(service)).toEqual([0, 0, 0]);
      expect(service.clock.sleeps).toEqual([1000, 2000]);
    });

    it("at the server is reported and not retried", async ({ service }) => {
      const sampling = await open(service);
      service.server.script("retrieveFuture", json({ error: "too long", category: "user" }));
      await expect(sampling.sample({ prompt: [1] })).rejects.toBeInstanceOf(RequestFailedError);
      expect(samples(service)).toHaveLength(1);
    });

    it.for(["flag", "config"] as const)(
      "is not retried when retries are off (%s)",
      async (how, { service }) => {
        if (how === "flag") service.flags["sample_no_retries"] = true;
        const retryConfig = how === "config" ? { enableRetries: false } : undefined;
        const sampling = await service
          .client()
          .createSamplingClient({ baseModel: "m", retryConfig });
        service.server.script("retrieveFuture", bare(410));
        await expect(sampling.sample({ prompt: [1] })).rejects.toMatchObject({
          code: "request_expired",
        });
        expect(samples(service)).toHaveLength(1);
      },
    );

    it("is retried if the caller decides so", async ({ service }) => {
      const asked: unknown[] = [];
      const judge = (answer: boolean) => (error: unknown) => {
        asked.push(error);
        return answer;
      };
      const client = service.client();
      const make = (isRetryable: (error: unknown) => boolean) =>
        client.createSamplingClient({ baseModel: "m", retryConfig: { isRetryable } });
      const failed = json({ error: "out of memory", category: "server" });
      service.server.script("retrieveFuture", failed, bare(410));
      await (await make(judge(true))).sample({ prompt: [1] });
      expect(asked).toMatchObject([{ code: "request_failed" }, { code: "request_expired" }]);
      service.server.script("retrieveFuture", bare(410));
      await expect((await make(judge(false))).sample({ prompt: [1] })).rejects.toMatchObject({
        code: "request_expired",
      });
    });

    it("for lack of progress fails all running ones", async ({ service }) => {
      const sampling = await service.client().createSamplingClient({
        baseModel: "m",
        retryConfig: { progressTimeoutMs: 60_000 },
      });
      service.clock.isManual = true;
      let answersLeft = 1;
      service.server.handle("retrieveFuture", (request) =>
        answersLeft-- > 0 ? service.result(request) : hang,
      );
      const futures = [1, 2, 3].map((token) => sampling.sample({ prompt: [token] }));
      await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 3);
      await settle(20);
      await service.clock.advance(40_000);
      // The one that succeeded at the start counts as progress of all.
      expect(futures.filter(({ state }) => state === "failed")).toEqual([]);
      await service.clock.advance(20_000);
      const outcomes = await Promise.allSettled(futures);
      const errors = outcomes.flatMap((o) => (o.status === "rejected" ? [o.reason as Error] : []));
      expect(errors).toHaveLength(2);
      expect(errors[0]).toBeInstanceOf(APIConnectionError);
      expect(errors[0]!.message).toMatch(/No progress/);
    });
  });

  it("queue states name the sampling session", async ({ service }) => {
    const sampling = await open(service);
    service.server.script(
      "retrieveFuture",
      json({ type: "try_again", request_id: "r", queue_state: "paused_rate_limit" }),
    );
    await sampling.sample({ prompt: [1] });
    expect(service.log).toContainEqual(
      "warn Sampling is paused for session-0:sample:0. Reason: concurrent sampler weights limit hit",
    );
  });

  it("samplers saved and created count with one counter", async ({ service }) => {
    const client = service.client();
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    await client.createSamplingClient({ baseModel: "m" });
    await training.saveWeightsAndGetSamplingClient();
    await training.createSamplingClient("tinker://run/sampler_weights/a");
    const numbers = service.server.seen
      .map(({ json: body }) => body?.["sampling_session_seq_id"])
      .filter((number) => number !== undefined);
    expect(numbers).toEqual([0, 1, 2]);
  });

  it("an ephemeral save keeps its number when it is retried", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    service.server.script("saveWeightsForSampler", bare(503), drop("before"));
    await training.saveWeightsAndGetSamplingClient();
    expect(
      service.server
        .requestsTo("saveWeightsForSampler")
        .map(({ json: body }) => [body?.["sampling_session_seq_id"], body?.["seq_id"]]),
    ).toEqual([
      [0, 1],
      [0, 1],
      [0, 1],
    ]);
  });

  it.for([
    [{}, /pass modelPath or baseModel/],
    [{ modelPath: "run/weights/a" }, /must start with tinker:/],
    [{ baseModel: "m", retryConfig: { jitterFactor: 2 } }, /retryConfig.jitterFactor/],
  ] as const)(
    "createSamplingClient(%j) is refused before anything is sent",
    async ([options, message], { service }) => {
      await expect(service.client().createSamplingClient(options)).rejects.toThrow(message);
      expect(service.server.seen).toEqual([]);
    },
  );
});
