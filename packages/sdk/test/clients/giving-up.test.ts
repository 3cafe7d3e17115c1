import { APITimeoutError, type ClientEvent } from "tinker-ts";
import { describe, expect } from "vitest";
import { bare, drop, hang, json } from "../support/scripted-server.js";
import { datum, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

describe("a pass that is cancelled before it is sent", () => {
  const flags = { fwdbwd_dispatch_bytes_semaphore_size: 0 };

  it("by its timeout, while it waits for room, leaves the client usable", async ({ service }) => {
    Object.assign(service.flags, flags);
    service.clock.isManual = true;
    const client = service.client();
    const first = await client.createLoraTrainingClient({ baseModel: "m" });
    const second = await client.createLoraTrainingClient({ baseModel: "m" });
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    service.server.handle("forwardBackward", async () => {
      await held;
      return service.accept("ForwardBackwardOutput", {
        lossFnOutputType: "x",
        lossFnOutputs: [],
        metrics: {},
      });
    });
    // One pass fills the budget; the other client's waits for it.
    const filling = first.forwardBackward([datum], "cross_entropy");
    await service.server.until(() => service.server.requestsTo("forwardBackward").length === 1);
    const waiting = second.forwardBackward([datum], "cross_entropy", { timeoutMs: 1000 });
    await settle(10);
    await service.clock.advance(1000);
    await expect(waiting).rejects.toBeInstanceOf(APITimeoutError);
    release();
    await filling;
    await second.optimStep();
    expect(service.server.requestsTo("forwardBackward")).toHaveLength(1);
  });

  it.for(["timeout", "signal", "cancel"] as const)(
    "by %s between its chunks leaves the client usable",
    async (how, { service }) => {
      service.flags["fwdbwd_max_chunk_len"] = 1;
      service.flags["parallel_fwdbwd_chunks"] = false;
      service.clock.isManual = true;
      const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
      let release = (): void => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      service.server.script("forwardBackward", async (response, request) => {
        await held;
        await service.accept("ForwardBackwardOutput", {
          lossFnOutputType: "x",
          lossFnOutputs: [],
        })(response, request);
      });
      const controller = new AbortController();
      const future = training.forwardBackward([datum, datum], "cross_entropy", {
        ...(how === "timeout" ? { timeoutMs: 1000 } : {}),
        ...(how === "signal" ? { signal: controller.signal } : {}),
      });
      await service.server.until(() => service.server.requestsTo("forwardBackward").length === 1);
      if (how === "timeout") await service.clock.advance(1000);
      else if (how === "signal") controller.abort(new Error("enough"));
      else future.cancel();
      await expect(future).rejects.toThrow();
      release();
      await settle(20);
      await training.optimStep();
      expect(service.server.requestsTo("forwardBackward")).toHaveLength(1);
      expect(service.server.requestsTo("optimStep")[0]!.json).toMatchObject({ seq_id: 2 });
    },
  );
});

describe("an aborted call", () => {
  const reasons = [
    ["an error of the caller", new Error("enough")],
    [
      "an error that looks like a lost connection",
      new APITimeoutError("the deadline of my request"),
    ],
  ] as const;

  it.for(reasons)("with %s rejects with that reason", async ([, reason], { service }) => {
    const events: ClientEvent[] = [];
    const client = service.client({ onEvent: (event) => events.push(event), telemetry: true });
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    service.server.handle("retrieveFuture", () => hang);
    const controller = new AbortController();
    const future = sampling.sample({ prompt: [1], signal: controller.signal });
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 1);
    controller.abort(reason);
    await expect(future).rejects.toBe(reason);
    await settle(20);
    expect(events.filter(({ type }) => type === "retry")).toEqual([]);
    expect(future.attempts).toEqual([]);
    const reports = service.server.requestsTo("telemetry").map(({ body }) => body.toString());
    expect(reports.join("")).not.toContain(reason.message);
  });

  it.for(["sample", "createModel", "getServerCapabilities"] as const)(
    "while %s is retried rejects with its reason",
    async (endpoint, { service }) => {
      service.clock.isManual = true;
      service.server.handle(endpoint, () => bare(503));
      service.server.script(endpoint, drop("before"));
      const client = service.client();
      const reason = new Error("enough");
      const controller = new AbortController();
      const { signal } = controller;
      const calls = {
        sample: async () =>
          (await client.createSamplingClient({ baseModel: "m" })).sample({ prompt: [1], signal }),
        createModel: () => client.createLoraTrainingClient({ baseModel: "m", signal }),
        getServerCapabilities: () => client.getServerCapabilities({ signal }),
      };
      const call = calls[endpoint]();
      call.catch(() => {});
      await service.server.until(() => service.server.requestsTo(endpoint).length === 1);
      await settle(20);
      controller.abort(reason);
      await expect(call).rejects.toBe(reason);
    },
  );

  it("is not quoted by the timeout of another operation", async ({ service }) => {
    service.clock.isManual = true;
    const client = service.client();
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    service.server.handle("retrieveFuture", () => hang);
    const controller = new AbortController();
    const given = sampling.sample({ prompt: [1], signal: controller.signal });
    const other = sampling.sample({ prompt: [1], timeoutMs: 5000 });
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 2);
    controller.abort(new APITimeoutError("the deadline of my request"));
    await expect(given).rejects.toThrow("the deadline of my request");
    await service.clock.advance(5000);
    const error = (await other.catch((caught: unknown) => caught)) as Error;
    expect(error).toBeInstanceOf(APITimeoutError);
    expect(error.message).not.toContain("the deadline of my request");
  });

  it("by a timeout reports failures since the call began, and none before", async ({ service }) => {
    const replies = [json({ detail: "an old trouble" }, 503), json({ supported_models: [] })];
    service.server.handle("getServerCapabilities", () => replies.shift() ?? hang);
    const client = service.client();
    await client.getServerCapabilities();
    service.clock.isManual = true;
    const late = client.getServerCapabilities({ timeoutMs: 5000 }).catch((error: unknown) => error);
    await service.server.until(
      () => service.server.requestsTo("getServerCapabilities").length === 3,
    );
    await service.clock.advance(5000);
    const error = (await late) as Error;
    expect(error).toBeInstanceOf(APITimeoutError);
    expect(error.message).not.toContain("an old trouble");
  });
});

describe("a server that holds polls for minutes", () => {
  it("is polled with a longer timeout, without a warning", async ({ service }) => {
    service.clock.isManual = true;
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    service.server.seen.length = 0;
    service.server.script("retrieveFuture", hang, hang, hang);
    const future = training.optimStep();
    const polls = () => service.server.requestsTo("retrieveFuture");
    for (const [index, waitMs] of [45_000, 90_000, 180_000].entries()) {
      await service.server.until(() => polls().length === index + 1);
      await settle(10);
      // A moment more, for the upload of the request.
      await service.clock.advance(waitMs + 10);
    }
    await future;
    expect(polls().map(({ headers }) => headers["x-stainless-read-timeout"])).toEqual([
      "45",
      "90",
      "180",
      "360",
    ]);
    expect(service.log.filter((text) => text.startsWith("warn"))).toEqual([]);
    expect(future.attempts).toEqual([]);
  });
});

describe("a server that answers polls in time", () => {
  it("is taken for lost after 45 s of silence, every time", async ({ service }) => {
    service.clock.isManual = true;
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    service.server.seen.length = 0;
    const pending = json({ type: "try_again", queue_state: "active" });
    service.server.script("retrieveFuture", pending, hang, hang);
    const future = training.optimStep();
    const polls = () => service.server.requestsTo("retrieveFuture").length;
    for (const poll of [2, 3]) {
      await service.server.until(() => polls() === poll);
      await settle(10);
      await service.clock.advance(45_010);
      await settle(10);
      expect(future.status.lastAnswer).toMatchObject({ status: null });
      await service.clock.advance(2_000);
    }
    await future;
    expect(future.attempts.map(({ status }) => status)).toEqual([null, null]);
  });
});

describe("a server that wants to be paid", () => {
  it("is waited for as long as its flag says, however often it says so", async ({ service }) => {
    service.flags["billing_exception_max_pause_duration_sec"] = 3600;
    const unpaid = Array.from({ length: 300 }, () => json({}, 402));
    // The time of the pause does not count: what fails afterwards is tried again as ever.
    service.server.script("listCheckpoints", ...unpaid, json({}, 503));
    service.server.handle("listCheckpoints", () => json({ checkpoints: [] }));
    await service.client({ maxRetries: 0 }).createRestClient().listCheckpoints("r");
    // Three hundred refusals, five seconds apart: far beyond the five minutes of other failures.
    expect(service.clock.now()).toBeGreaterThan(1_500_000);
    expect(service.clock.now()).toBeLessThan(1_510_000);
  });

  it("is not retried beyond that", async ({ service }) => {
    service.flags["billing_exception_max_pause_duration_sec"] = 600;
    service.server.handle("listCheckpoints", () => json({ error: "unpaid" }, 402));
    await expect(service.client().createRestClient().listCheckpoints("r")).rejects.toMatchObject({
      status: 402,
    });
    expect(service.clock.now()).toBeGreaterThan(600_000);
    expect(service.clock.now()).toBeLessThan(620_000);
  });
});

describe("a poll that gets 429", () => {
  it("waits for the server's retry-after", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    service.clock.sleeps.length = 0;
    service.server.script("retrieveFuture", bare(429, { "retry-after": "7" }));
    await training.optimStep();
    expect(service.clock.sleeps).toEqual([7000]);
  });
});
