import { decodeProto, type WireInput } from "tinker-ts/wire";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SqlDatabase } from "../src/store/sql.js";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp, type TestAppOptions } from "./support/test-app.js";

let app: TestApp;
let sessionId: string;
beforeEach(async () => {
  app = await TestApp.open();
  sessionId = await app.session();
});
afterEach(() => app.dispose());

const ask = (more: Partial<WireInput<"SampleRequest">>): WireInput<"SampleRequest"> => ({
  prompt: [1, 2, 3],
  samplingParams: { maxTokens: 4, seed: 5 },
  ...more,
});

async function sampler(modelPath: string | null = null): Promise<string> {
  const answer = await app.call("createSamplingSession", {
    sessionId,
    samplingSessionSeqId: 0,
    ...(modelPath === null ? { baseModel: "toy" } : { modelPath }),
  });
  return answer.samplingSessionId;
}

async function savedSampler(model: string, seqId: number, name: string): Promise<string> {
  const save = await app.call("saveWeightsForSampler", { modelId: model, path: name, seqId });
  return (await app.result(save.requestId))["path"] as string;
}

async function tokensOf(more: Partial<WireInput<"SampleRequest">>): Promise<unknown> {
  const { requestId } = await app.call("sample", ask(more));
  const result = await app.result(requestId);
  return (result["sequences"] as { tokens: number[] }[])[0]!.tokens;
}

describe("addressing", () => {
  it("reaches a base model, a checkpoint and a sampling session", async () => {
    const model = await app.model(sessionId, { seed: 11 });
    const path = await savedSampler(model, 1, "a");
    expect(path).toBe(`tinker://${model}/sampler_weights/a`);
    const base = await tokensOf({ baseModel: "toy" });
    const fromPath = await tokensOf({ modelPath: path });
    expect(fromPath).not.toEqual(base);
    expect(await tokensOf({ samplingSessionId: await sampler(path), seqId: 0 })).toEqual(fromPath);
  });

  it("reaches a checkpoint of a session's first run without the number of the run", async () => {
    const model = await app.model(sessionId, { seed: 11 });
    expect(model).toBe(`${sessionId}:train:0`);
    const path = await savedSampler(model, 1, "a");
    const short = `tinker://${sessionId}/sampler_weights/a`;
    expect(await tokensOf({ modelPath: short })).toEqual(await tokensOf({ modelPath: path }));
  });

  it("reaches a base model and a checkpoint by their aliases, in sessions too", async () => {
    const model = await app.model(sessionId, { seed: 11 });
    const path = await savedSampler(model, 1, "a");
    const [base, saved] = [
      await tokensOf({ baseModel: "toy" }),
      await tokensOf({ modelPath: path }),
    ];
    const { dataDir } = app;
    await app.stop();
    const named = await TestApp.open({ dataDir, aliases: { guide: path, plain: "toy" } });
    try {
      const result = async (more: Partial<WireInput<"SampleRequest">>): Promise<unknown> => {
        const { requestId } = await named.call("sample", ask(more));
        const { sequences } = await named.result(requestId);
        return (sequences as { tokens: number[] }[])[0]!.tokens;
      };
      expect(await result({ baseModel: "guide" })).toEqual(saved);
      expect(await result({ baseModel: "plain" })).toEqual(base);
      const { samplingSessionId } = await named.call("createSamplingSession", {
        sessionId: await named.session(),
        samplingSessionSeqId: 0,
        baseModel: "guide",
      });
      expect(await result({ samplingSessionId, seqId: 0 })).toEqual(saved);
    } finally {
      await named.stop();
      await app.start();
    }
  });

  it.each([
    [{}, 400, "needs sampling_session_id, model_path or base_model"],
    [{ baseModel: "gpt-9" }, 400, "is not served here; models of this server: toy"],
    [{ modelPath: "tinker://x/sampler_weights/y" }, 404, "does not exist or is not yours"],
    [{ modelPath: "/etc/passwd" }, 400, "is not a checkpoint path"],
    [{ samplingSessionId: "nope", seqId: 0 }, 404, "sampling session nope"],
  ])("refuses %j", async (address, status, text) => {
    const response = await app.fetch("sample", ask(address));
    expect(response.status).toBe(status);
    expect(await response.text()).toContain(text);
  });

  it("opens the same sampling session again, but not for other weights", async () => {
    expect(await sampler()).toBe(await sampler());
    expect(await sampler()).toBe(`${sessionId}:sample:0`);
    const model = await app.model(sessionId);
    const path = await savedSampler(model, 1, "a");
    await expect(sampler(path)).rejects.toThrow("409");
  });
});

describe("what no model can do is refused at once", () => {
  beforeEach(async () => {
    await sampler();
  });

  const extended = (extensions: object) => ({
    samplingParams: { maxTokens: 4, unknownFields: { extensions } },
  });

  it("more biases than are taken", async () => {
    const biases = Object.fromEntries(Array.from({ length: 16_385 }, (_, id) => [id, 0]));
    const body = ask({ baseModel: "toy", ...extended({ logit_bias: biases }) });
    const response = await app.fetch("sample", body);
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining("logit_bias: has more than 16384 tokens"),
    ]);
  });

  it.each([
    [{ prompt: [] }, "prompt: is empty"],
    [extended({ schema: { not: {} } }), "extensions.schema: not: is not supported"],
    [{ samplingParams: { unknownFields: { extensions: [] } } }, "extensions: must be an object"],
    [{ prompt: [1, 100] }, "prompt[1]: token 100 is not in the vocabulary of 100"],
    [{ prompt: [-1] }, "prompt[0]"],
    [{ prompt: Array.from({ length: 64 }, () => 1) }, "leaves no room in the context of 64"],
    [{ samplingParams: { maxTokens: 62 } }, "at most 61 fit"],
    [{ samplingParams: { maxTokens: 0 } }, "max_tokens"],
    [{ samplingParams: { temperature: -1 } }, "temperature"],
    [{ samplingParams: { topP: 0 } }, "top_p"],
    [{ samplingParams: { stop: Array.from({ length: 1025 }, () => 1) } }, "stop: has 1025 entries"],
    [{ numSamples: 0 }, "num_samples"],
    [{ numSamples: 5000 }, "num_samples"],
    [{ topkPromptLogprobs: -1 }, "topk_prompt_logprobs"],
    [
      { prompt: { chunks: [{ type: "image", data: new Uint8Array(1), format: "png" } as const] } },
      "image chunks need a model that reads them",
    ],
  ])("%j", async (more, text) => {
    const response = await app.fetch("sample", ask({ baseModel: "toy", ...more }));
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(text);
  });
});

it("answers in protobuf when asked for it, in JSON otherwise", async () => {
  const { requestId } = await app.call("sample", ask({ baseModel: "toy", promptLogprobs: true }));
  const json = await app.result(requestId);
  const response = await app.fetch(
    "retrieveFuture",
    { requestId },
    { headers: { accept: "application/x-protobuf" } },
  );
  expect(response.headers.get("content-type")).toBe("application/x-protobuf");
  const proto = decodeProto("SampleResponse", new Uint8Array(await response.arrayBuffer()));
  expect([...proto.sequences[0]!.tokens]).toEqual(
    (json["sequences"] as { tokens: number[] }[])[0]!.tokens,
  );
  expect(json["prompt_logprobs"]).toEqual([null, -1, -1]);
  expect(proto.promptLogprobs).toEqual([null, -1, -1]);
});

it("does a numbered request once, and gives the same tokens when it is asked for again", async () => {
  const samplingSessionId = await sampler();
  const body = ask({ samplingSessionId, seqId: 0, samplingParams: { maxTokens: 4 } });
  const first = await app.call("sample", body);
  const tokens = await app.result(first.requestId);
  const again = await app.call("sample", body);
  expect(again.requestId).toBe(first.requestId);
  expect(await app.result(again.requestId)).toEqual(tokens);
  expect(app.engine.log).toHaveLength(1);
  const other = ask({ samplingSessionId, seqId: 0, samplingParams: { maxTokens: 5 } });
  expect((await app.fetch("sample", other)).status).toBe(409);
});

it("samples nothing for a request that could not be accepted, and takes it when it comes again", async () => {
  const exec = (sql: string): void => {
    const database = new SqlDatabase(join(app.dataDir, "server.db"));
    database.exec(sql);
    database.close();
  };
  const samplingSessionId = await sampler();
  const body = ask({ samplingSessionId, seqId: 0 });
  exec(`CREATE TRIGGER fault BEFORE INSERT ON requests
    BEGIN SELECT RAISE(ABORT, 'a fault of the test'); END`);
  expect((await app.fetch("sample", body)).status).toBe(500);
  expect(app.engine.log).toEqual([]);
  exec("DROP TRIGGER fault");
  const { requestId } = await app.call("sample", body);
  expect(await app.result(requestId)).toHaveProperty("sequences");
  const metrics = await (await app.handle(new Request("http://localhost/metrics"))).text();
  expect(metrics).toContain("tinker_pending_samples 0");
  expect(app.logLines.join("\n")).not.toContain("cannot record a sample");
});

it("samples again after a restart what had not finished, with the same seed", async () => {
  await app.dispose();
  app = await TestApp.open({ limits: { shutdownGraceMs: 1 } });
  sessionId = await app.session();
  const arrived = app.engine.gates.close("sample");
  const samplingSessionId = await sampler();
  const body = ask({ samplingSessionId, seqId: 3, samplingParams: { maxTokens: 4 } });
  const { requestId } = await app.call("sample", body);
  await arrived;
  const [before] = app.engine.log;
  await app.stop();
  app.engine.gates.open("sample");
  await app.start();
  expect(await app.result(requestId)).toHaveProperty("sequences");
  expect(app.engine.log.at(-1)).toBe(before);
});

it("leaves samples that wait to the next start when the server stops", async () => {
  await app.dispose();
  app = await TestApp.open({ limits: { maxRunningSequences: 1 } });
  const arrived = app.engine.gates.close("sample");
  const running = await app.call("sample", ask({ baseModel: "toy" }));
  const waiting = await app.call("sample", ask({ baseModel: "toy" }));
  await arrived;
  const stopped = app.stop();
  app.engine.gates.open("sample");
  await stopped;
  expect(app.engine.log).toHaveLength(1);
  await app.start();
  expect(await app.result(running.requestId)).toHaveProperty("sequences");
  expect(await app.result(waiting.requestId)).toHaveProperty("sequences");
  expect(app.engine.log).toHaveLength(2);
});

it("keeps numbers beyond 2^53 apart", async () => {
  const samplingSessionId = await sampler();
  const base = 2n ** 60n;
  const ids = await Promise.all(
    [base, base + 1n].map(async (seqId) => {
      const { requestId } = await app.call("sample", ask({ samplingSessionId, seqId }));
      return requestId;
    }),
  );
  expect(new Set(ids).size).toBe(2);
});

it("answers 429 above the limit of waiting requests", async () => {
  await app.dispose();
  app = await TestApp.open({ limits: { maxPendingSamples: 2 } });
  sessionId = await app.session();
  const arrived = app.engine.gates.close("sample");
  await app.call("sample", ask({ baseModel: "toy" }));
  await app.call("sample", ask({ baseModel: "toy" }));
  await arrived;
  const response = await app.fetch("sample", ask({ baseModel: "toy" }));
  expect(response.status).toBe(429);
  expect(response.headers.get("retry-after")).toBe("1");
  app.engine.gates.open("sample");
});

it("reports to pollers if a request is sampling or waiting for a place", async () => {
  await app.dispose();
  const clock = new ManualClock();
  app = await TestApp.open({ clock, limits: { maxRunningSequences: 1 } });
  const arrived = app.engine.gates.close("sample");
  const running = await app.call("sample", ask({ baseModel: "toy" }));
  const waiting = await app.call("sample", ask({ baseModel: "toy" }));
  await arrived;
  const states = Promise.all(
    [running, waiting].map(async ({ requestId }) => {
      const response = await app.fetch("retrieveFuture", { requestId });
      expect(response.status).toBe(408);
      return (await response.json()) as Record<string, unknown>;
    }),
  );
  await clock.advance(20_000);
  expect(await states).toMatchObject([
    { queue_state: "active", queue_state_reason: "sampling" },
    {
      queue_state: "paused_capacity",
      queue_state_reason: expect.stringContaining("1 requests are waiting") as string,
    },
  ]);
  app.engine.gates.open("sample");
});

it("samples from a saved state, never from later training, and does not disturb training", async () => {
  const model = await app.model(sessionId, { seed: 3 });
  const first = await savedSampler(model, 1, "first");
  const before = await tokensOf({ modelPath: first });
  await app.call("forwardBackward", passBody(model, 2, [[9, 9]]));
  const step = { adamParams: { learningRate: 0.5 }, modelId: model, seqId: 3 };
  await app.result((await app.call("optimStep", step)).requestId);
  const second = await savedSampler(model, 4, "second");
  expect(await tokensOf({ modelPath: first })).toEqual(before);
  const trained = await tokensOf({ modelPath: second });
  expect(trained).not.toEqual(before);
  await app.restart();
  expect(await tokensOf({ modelPath: first })).toEqual(before);
  expect(await tokensOf({ modelPath: second })).toEqual(trained);
});

describe("ephemeral saves", () => {
  it("open a sampling session that survives a restart and is not listed", async () => {
    const model = await app.model(sessionId, { seed: 3 });
    const body = { modelId: model, samplingSessionSeqId: 4, seqId: 1 };
    const { requestId } = await app.call("saveWeightsForSampler", body);
    const result = await app.result(requestId);
    expect(result).toEqual({
      type: "save_weights_for_sampler",
      sampling_session_id: `${sessionId}:sample:4`,
    });
    const ask4 = { samplingSessionId: `${sessionId}:sample:4`, seqId: 0 };
    const before = await tokensOf(ask4);
    await app.restart();
    expect(await tokensOf({ ...ask4, seqId: 1 })).toEqual(before);
    expect((await app.call("listUserCheckpoints", null)).checkpoints).toEqual([]);
  });

  it("are one save when a retry asks for another number of the sampling session", async () => {
    const model = await app.model(sessionId);
    const body = { modelId: model, samplingSessionSeqId: 4, seqId: 1 };
    const first = await app.call("saveWeightsForSampler", body);
    const retry = await app.call("saveWeightsForSampler", { ...body, samplingSessionSeqId: 5 });
    expect(retry.requestId).toBe(first.requestId);
    expect(await app.result(retry.requestId)).toMatchObject({
      sampling_session_id: `${sessionId}:sample:4`,
    });
  });
});

it("streams a line per token and the response at the end", async () => {
  const response = await app.fetch("streamSample", ask({ baseModel: "toy", numSamples: 2 }));
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  const lines = (await response.text()).trim().split("\n");
  const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(parsed).toHaveLength(9);
  expect(parsed[0]).toEqual({ index: 0, token: 5, logprob: 0 });
  expect(parsed.at(-1)).toHaveProperty("sequences");
});

it("ends a stream that fails with a line that says why", async () => {
  const response = await app.fetch("streamSample", ask({ baseModel: "toy", prompt: [1, 2, 100] }));
  const lines = (await response.text()).trim().split("\n");
  expect(JSON.parse(lines.at(-1)!)).toEqual({
    error: "prompt[2]: token 100 is not in the vocabulary of 100 tokens",
    category: "user",
  });
});

it.each(["queued", "streamed"])(
  "bills prompt tokens once, as cached or as not: %s",
  async (way) => {
    app.engine.cachedTokens = 3;
    const body = ask({ baseModel: "toy", prompt: [1, 2, 3, 4, 5] });
    if (way === "queued") await app.result((await app.call("sample", body)).requestId);
    else await (await app.fetch("streamSample", body)).text();
    const hour = (shift: number): string => {
      const at = Math.floor(Date.now() / 3_600_000 + shift) * 3_600_000;
      return new Date(at).toISOString().replace(".000", "");
    };
    const query = { starting_on: hour(-1), ending_before: hour(2) };
    const { data } = await app.call("getBillingUsage", null, { query });
    const prompts = data.flatMap(({ eventInfo }) =>
      eventInfo.type === "sampling_prefill" ? [eventInfo] : [],
    );
    const tokens = prompts.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
    expect(tokens).toBe(5);
  },
);

it("gives streaming up when its client goes away", async () => {
  const arrived = app.engine.gates.close("sample");
  const abort = new AbortController();
  const response = await app.fetch("streamSample", ask({ baseModel: "toy" }), {
    signal: abort.signal,
  });
  await arrived;
  await response.body?.cancel();
  app.engine.gates.open("sample");
  const metrics = await (await app.handle(new Request("http://localhost/metrics"))).text();
  expect(metrics).toContain("tinker_pending_samples 0");
});

describe("ephemeral sampler weights", () => {
  async function ephemeral(clockOptions: TestAppOptions): Promise<string> {
    await app.dispose();
    app = await TestApp.open(clockOptions);
    sessionId = await app.session();
    const model = await app.model(sessionId);
    const body = { modelId: model, samplingSessionSeqId: 0, seqId: 1 };
    const save = await app.call("saveWeightsForSampler", body);
    return (await app.result(save.requestId))["sampling_session_id"] as string;
  }

  it.each([
    ["unused for too long", { ephemeralTtlMs: 60_000 }],
    ["too many", { maxEphemeralBytes: 1 }],
  ])("go when they are %s, and sampling from them says so", async (_, limits) => {
    const clock = new ManualClock();
    const samplingSessionId = await ephemeral({
      clock,
      limits: { sessionTimeoutMs: 1e9, ...limits },
    });
    await clock.advance(70_000);
    const response = await app.fetch("sample", ask({ samplingSessionId, seqId: 0 }));
    expect(response.status).toBe(404);
    expect(await response.text()).toContain("sampler_weights/ephemeral-0 does not exist");
  });

  it("stay while they are used", async () => {
    const clock = new ManualClock();
    const limits = { ephemeralTtlMs: 100_000, sessionTimeoutMs: 1e9 };
    const samplingSessionId = await ephemeral({ clock, limits });
    for (let seqId = 0; seqId < 4; seqId++) {
      await clock.advance(70_000);
      expect(await tokensOf({ samplingSessionId, seqId })).toHaveLength(4);
    }
  });
});
