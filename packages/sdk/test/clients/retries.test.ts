import {
  APIConnectionError,
  APIResponseValidationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  RateLimitError,
  type APIError,
  type ClientEvent,
} from "tinker-ts";
import { describe, expect } from "vitest";
import { bare, bytes, drop, hang, json, stall, type Reply } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

const capabilities = { supported_models: [{ model_name: "m" }] };
const isRetryable = [408, 409, 429, 500, 502, 503, 504];
const isFinal = [400, 401, 402, 403, 404, 410, 418, 422, 301];

const failure = async (promise: Promise<unknown>): Promise<APIError> =>
  promise.then(
    () => expect.fail("it succeeded"),
    (error: unknown) => error as APIError,
  );

describe("one HTTP call", () => {
  it.for(isRetryable)("is retried after %i", async (status, { service }) => {
    service.server.script("getServerCapabilities", json({}, status), json(capabilities));
    const { supportedModels } = await service.client().getServerCapabilities();
    expect(supportedModels).toMatchObject([{ modelName: "m" }]);
    expect(service.clock.sleeps).toEqual([500]);
  });

  it.for(isFinal.filter((status) => status !== 402))(
    "is not retried after %i",
    async (status, { service }) => {
      service.server.script("getServerCapabilities", json({ detail: "no" }, status));
      const error = await failure(service.client().getServerCapabilities());
      expect(error).toMatchObject({ status, body: { detail: "no" } });
      expect(error.request).toEqual({
        method: "GET",
        url: `${service.server.url}/api/v1/get_server_capabilities`,
      });
      expect(service.server.requestsTo("getServerCapabilities")).toHaveLength(1);
      expect(service.clock.sleeps).toEqual([]);
    },
  );

  it.for([
    ["before the answer", drop("before")],
    ["in the middle of the body", drop("inBody")],
  ] as const)("is retried when the connection breaks %s", async ([, reply], { service }) => {
    service.server.script("getServerCapabilities", reply, reply, json(capabilities));
    await service.client().getServerCapabilities();
    expect(service.clock.sleeps).toEqual([500, 1000]);
  });

  it("keeps its idempotency key and body over attempts, and counts them", async ({ service }) => {
    service.server.script("weightsInfo", bare(500), bare(500));
    service.server.handle("weightsInfo", () => json({ base_model: "m", is_lora: true }));
    await service.client().createRestClient().getWeightsInfoByTinkerPath("tinker://r/weights/a");
    await service.client().createRestClient().getWeightsInfoByTinkerPath("tinker://r/weights/a");
    const seen = service.server.requestsTo("weightsInfo");
    const keys = seen.map(({ headers }) => headers["x-idempotency-key"]);
    expect(keys[0]).toMatch(/^stainless-node-retry-[0-9a-f-]{36}$/);
    expect(keys.slice(0, 3)).toEqual([keys[0], keys[0], keys[0]]);
    expect(keys[3]).not.toBe(keys[0]);
    expect(seen.map(({ headers }) => headers["x-stainless-retry-count"])).toEqual([
      "0",
      "1",
      "2",
      "0",
    ]);
    expect(new Set(seen.map(({ body }) => body.toString()))).toEqual(
      new Set(['{"tinker_path":"tinker://r/weights/a"}']),
    );
  });

  it("obeys x-should-retry in both directions", async ({ service }) => {
    const client = service.client();
    service.server.script(
      "getServerCapabilities",
      json({}, 418, { "x-should-retry": "true" }),
      json(capabilities),
    );
    await client.getServerCapabilities();
    service.server.script("getServerCapabilities", json({}, 503, { "x-should-retry": "false" }));
    await expect(client.getServerCapabilities()).rejects.toBeInstanceOf(InternalServerError);
    expect(service.server.requestsTo("getServerCapabilities")).toHaveLength(3);
  });

  it("waits for the server's retry-after", async ({ service }) => {
    const wallTime = service.clock.wallTime();
    service.server.script(
      "getServerCapabilities",
      json({}, 429, { "retry-after-ms": "1234" }),
      json({}, 429, { "retry-after": "3" }),
      // The clock has moved on by the two waits before.
      json({}, 503, { "retry-after": new Date(wallTime + 4234 + 10_766).toUTCString() }),
      json(capabilities),
    );
    await service.client().getServerCapabilities();
    const [first, second, third] = service.clock.sleeps;
    expect([first, second]).toEqual([1234, 3000]);
    expect(third).toBeGreaterThan(9_700);
    expect(third).toBeLessThanOrEqual(10_766);
  });

  it.for([
    ["before the answer", hang, /no answer for 30000 ms/],
    ["inside the answer", stall, /no further part of its answer for 30000 ms/],
  ] as const)("times out on silence %s", async ([, reply, message], { service }) => {
    service.clock.isManual = true;
    service.server.script("getServerCapabilities", reply, json(capabilities));
    const retries: ClientEvent[] = [];
    const onEvent = (event: ClientEvent) => retries.push(event);
    const client = service.client({ timeoutMs: 30_000, onEvent });
    const call = client.getServerCapabilities();
    const asked = () => service.server.requestsTo("getServerCapabilities").length;
    await service.server.until(() => asked() === 1);
    await settle(10);
    await service.clock.advance(29_999);
    expect(retries).toEqual([]);
    await service.clock.advance(1);
    expect(retries).toMatchObject([{ type: "retry", status: null }]);
    expect(retries[0]).toHaveProperty("message", expect.stringMatching(message));
    await service.clock.advance(500);
    await call;
    expect(asked()).toBe(2);
  });

  it("accepts a slow response that keeps arriving", async ({ service }) => {
    service.clock.isManual = true;
    const text = JSON.stringify({ ...capabilities, padding: "x".repeat(100_000) });
    let send = (_part: string): void => {};
    service.server.script("getServerCapabilities", (response) => {
      response.writeHead(200, { "content-length": text.length });
      response.flushHeaders();
      send = (part) => void response.write(part);
    });
    const call = service.client({ timeoutMs: 30_000 }).getServerCapabilities();
    await service.server.until(() => service.server.requestsTo("getServerCapabilities").length > 0);
    for (let at = 0; at < text.length; at += 10_000) {
      await settle(10);
      await service.clock.advance(9_000);
      send(text.slice(at, at + 10_000));
    }
    expect((await call).supportedModels).toMatchObject([{ modelName: "m" }]);
    expect(service.server.requestsTo("getServerCapabilities")).toHaveLength(1);
  });

  it("times out on a response that never ends", async ({ service }) => {
    service.clock.isManual = true;
    let send = (_part: string): void => {};
    service.server.script("getServerCapabilities", (response) => {
      response.writeHead(200);
      response.flushHeaders();
      send = (part) => void response.write(part);
    });
    const call = service.client({ timeoutMs: 30_000, maxRetries: 0 }).getServerCapabilities({
      timeoutMs: 100_000,
    });
    call.catch(() => {});
    await service.server.until(() => service.server.requestsTo("getServerCapabilities").length > 0);
    await settle(10);
    for (let seconds = 0; seconds < 100; seconds += 5) {
      await service.clock.advance(5_000);
      send(" ");
      await settle(10);
    }
    const { attempts } = await failure(call);
    expect(attempts[0]!.message).toMatch(/too little of its answer in 300\d\d ms/);
  });

  it("refuses a 2xx answer of the wrong shape, type or encoding", async ({ service }) => {
    for (const reply of [
      json({ supported_models: 5 }),
      bytes(Buffer.from("<html>"), 200, { "content-type": "text/html" }),
      bytes(new Uint8Array()),
      bytes(Buffer.from([0xff, 0xfe])),
    ]) {
      service.server.script("getServerCapabilities", reply);
      const error = await failure(service.client().getServerCapabilities());
      expect(error).toBeInstanceOf(APIResponseValidationError);
      expect(error).toMatchObject({ status: 200 });
    }
  });

  it("accepts JSON of any media type", async ({ service }) => {
    const body = Buffer.from(JSON.stringify(capabilities));
    service.server.script(
      "getServerCapabilities",
      bytes(body, 200, { "content-type": "text/plain" }),
    );
    await service.client().getServerCapabilities();
  });
});

const withoutLength: Reply = (response) => {
  response.socket?.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
};

describe("an empty 400", () => {
  it.for([
    ["of length 0", bare(400)],
    ["without a length", withoutLength],
  ] as const)("%s is a broken connection", async ([, reply], { service }) => {
    service.server.script("getServerCapabilities", reply, json(capabilities));
    await service.client().getServerCapabilities();
    expect(service.clock.sleeps).toEqual([500]);
  });

  it("is a client error after sixteen of them, and retried again later", async ({ service }) => {
    const client = service.client({ maxRetries: 0 });
    const rest = client.createRestClient();
    service.server.handle("listCheckpoints", () => bare(400));
    const call = () => failure(rest.listCheckpoints("r"));
    // The outer loop goes on for five minutes, so the budget ends inside the first or second call.
    expect(await call()).toBeInstanceOf(APIConnectionError);
    expect(await call()).toBeInstanceOf(BadRequestError);
    expect(service.server.requestsTo("listCheckpoints").length).toBe(17);
    service.server.handle("listCheckpoints", () => json({ checkpoints: [] }));
    await rest.listCheckpoints("r");
    service.server.script("listCheckpoints", bare(400));
    await rest.listCheckpoints("r");
  });

  it("with a body is an error of the caller", async ({ service }) => {
    service.server.script("getServerCapabilities", json({ detail: "bad" }, 400));
    await expect(service.client().getServerCapabilities()).rejects.toBeInstanceOf(BadRequestError);
  });
});

describe("the loop around a call", () => {
  it("retries for five minutes with growing pauses, and reports every attempt", async ({
    service,
  }) => {
    service.server.handle("getServerCapabilities", () => json({ detail: "busy" }, 503));
    const events: ClientEvent[] = [];
    const client = service.client({ maxRetries: 0, onEvent: (event) => events.push(event) });
    const error = await failure(client.getServerCapabilities());
    expect(error).toBeInstanceOf(InternalServerError);
    const waits = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 30, 30, 29].map((s) => s * 1000);
    expect(service.clock.sleeps).toEqual(waits);
    expect(error.attempts).toEqual([
      ...waits.map((delayMs) => ({
        status: 503,
        message: "Error code: 503 - busy",
        delayMs,
        mayHaveBeenApplied: false,
      })),
      expect.objectContaining({ status: 503, delayMs: null }),
    ]);
    expect(events.filter(({ type }) => type === "retry")).toHaveLength(waits.length);
  });

  it("contains the retries of each HTTP call", async ({ service }) => {
    service.server.script(
      "getServerCapabilities",
      ...[500, 500, 500].map((status) => bare(status)),
      json(capabilities),
    );
    await service.client({ maxRetries: 1 }).getServerCapabilities();
    expect(service.clock.sleeps).toEqual([500, 1000, 500]);
  });

  it("keeps the idempotency key, counts every try and shows all of them", async ({ service }) => {
    service.server.handle("weightsInfo", () => bare(500));
    const rest = service.client({ maxRetries: 1 }).createRestClient();
    const error = await failure(rest.getWeightsInfoByTinkerPath("tinker://r/weights/a"));
    const seen = service.server.requestsTo("weightsInfo");
    expect(new Set(seen.map(({ headers }) => headers["x-idempotency-key"])).size).toBe(1);
    expect(seen.map(({ headers }) => headers["x-stainless-retry-count"])).toEqual(
      seen.map((_, index) => String(index)),
    );
    expect(error.attempts).toHaveLength(seen.length);
  });

  it("respects a server that forbids retries", async ({ service }) => {
    service.server.script("getServerCapabilities", json({}, 503, { "x-should-retry": "false" }));
    await expect(service.client().getServerCapabilities()).rejects.toBeInstanceOf(
      InternalServerError,
    );
    expect(service.server.requestsTo("getServerCapabilities")).toHaveLength(1);
  });

  it("ends at once when the caller aborts during a wait", async ({ service }) => {
    service.clock.isManual = true;
    service.server.handle("getServerCapabilities", () => bare(503));
    const controller = new AbortController();
    const call = failure(
      service.client({ maxRetries: 0 }).getServerCapabilities({ signal: controller.signal }),
    );
    await service.server.until(() => service.server.requestsTo("getServerCapabilities").length > 0);
    controller.abort(new Error("enough"));
    expect((await call).message).toBe("enough");
  });
});

describe("the log", () => {
  const warnings = (log: readonly string[]) => log.filter((line) => line.startsWith("warn "));

  it("has no entry for a failure that a retry fixes", async ({ service }) => {
    service.server.script("getServerCapabilities", bare(500), bare(500), json(capabilities));
    await service.client().getServerCapabilities();
    expect(warnings(service.log)).toEqual([]);
  });

  it("warns within seconds of repeated failures, then once a minute", async ({ service }) => {
    service.server.handle("getServerCapabilities", () => json({ detail: "busy" }, 503));
    await failure(service.client().getServerCapabilities());
    const lines = warnings(service.log);
    expect(lines[0]).toBe(
      "warn getServerCapabilities keeps failing and is tried again in 2 s: Error code: 503 - busy",
    );
    // Five minutes of trying.
    expect(lines.length).toBeGreaterThanOrEqual(4);
    expect(lines.length).toBeLessThanOrEqual(7);
  });

  it("warns of polls without answers", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    service.server.script("retrieveFuture", drop("before"), drop("before"), drop("before"));
    await training.optimStep();
    expect(warnings(service.log)).toEqual([
      expect.stringMatching(/^warn retrieveFuture keeps failing and is tried again in 2 s: /),
    ]);
  });
});

describe("402", () => {
  it("is retried every five seconds and logged once a minute", async ({ service }) => {
    service.flags["billing_exception_max_pause_duration_sec"] = 3600;
    const refusals = Array.from({ length: 20 }, () => json({ detail: "pay" }, 402));
    service.server.script("getServerCapabilities", ...refusals, json(capabilities));
    await service.client().getServerCapabilities();
    expect(service.clock.sleeps).toEqual(refusals.map(() => 5000));
    // 20 refusals over 95 s: at the start and after more than a minute.
    expect(service.log.filter((line) => line.startsWith("warn billing"))).toHaveLength(2);
  });

  it("reaches the caller when the server's limit is over", async ({ service }) => {
    service.flags["billing_exception_max_pause_duration_sec"] = 60;
    service.server.handle("getServerCapabilities", () => json({ detail: "pay" }, 402));
    const error = await failure(service.client().getServerCapabilities());
    expect(error).toMatchObject({ status: 402 });
    expect(service.clock.sleeps).toEqual(Array.from({ length: 13 }, () => 5000));
    expect(service.log.at(-1)).toMatch(/^error billing/);
  });
});

describe("409", () => {
  it("is a lock that may be released", async ({ service }) => {
    service.server.script("deleteCheckpoint", json({}, 409), bare(204));
    await service
      .client()
      .createRestClient()
      .deleteCheckpointFromTinkerPath("tinker://r/weights/a");
    expect(service.server.requestsTo("deleteCheckpoint")).toHaveLength(2);
  });

  it("on publishing describes a state, so it fails at once", async ({ service }) => {
    const rest = service.client().createRestClient();
    for (const [endpoint, call] of [
      ["publishCheckpoint", () => rest.publishCheckpointFromTinkerPath("tinker://r/weights/a")],
      ["unpublishCheckpoint", () => rest.unpublishCheckpointFromTinkerPath("tinker://r/weights/a")],
    ] as const) {
      service.server.handle(endpoint, () => json({ detail: "already" }, 409));
      await expect(call()).rejects.toBeInstanceOf(ConflictError);
      expect(service.server.requestsTo(endpoint)).toHaveLength(1);
    }
  });
});

it("429 is a RateLimitError when it lasts", async ({ service }) => {
  service.server.handle("getServerCapabilities", () => bare(429));
  const error = await failure(service.client({ maxRetries: 0 }).getServerCapabilities());
  expect(error).toBeInstanceOf(RateLimitError);
});
