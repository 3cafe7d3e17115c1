import { gzipSync } from "node:zlib";
import {
  NotFoundError,
  RequestExpiredError,
  RequestFailedError,
  ResultError,
  type ClientEvent,
} from "tinker-ts";
import { encodeJson, encodeProto } from "tinker-ts/wire";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, bytes, drop, hang, json, proto, stall } from "../support/scripted-server.js";
import { datum, describeDialects, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

const tryAgain = (queueState = "active", reason?: string) => ({
  type: "try_again",
  request_id: "r",
  queue_state: queueState,
  ...(reason === undefined ? {} : { queue_state_reason: reason }),
});

const start = async (service: FakeService) => {
  const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
  service.server.seen.length = 0;
  service.clock.sleeps.length = 0;
  return training;
};

const polls = (service: FakeService) => service.server.requestsTo("retrieveFuture");

describeDialects((dialect) => {
  describe("a poll", () => {
    it("names its model and operation", async ({ service }) => {
      const training = await start(service);
      service.server.script("retrieveFuture", json(tryAgain()), json(tryAgain()));
      await training.forwardBackward([datum], "cross_entropy");
      await training.optimStep();
      const seen = polls(service);
      const column = (name: string) => seen.map(({ headers }) => headers[name]);
      expect(column("x-tinker-request-iteration")).toEqual(["0", "1", "2", "0"]);
      expect(column("x-tinker-request-type")).toEqual([
        "ForwardBackward",
        "ForwardBackward",
        "ForwardBackward",
        "OptimStep",
      ]);
      expect(column("x-tinker-create-promise-roundtrip-time")).toEqual([
        expect.stringMatching(/^[\d.]+$/),
        undefined,
        undefined,
        expect.stringMatching(/^[\d.]+$/),
      ]);
      expect(column("x-stainless-raw-response")).toEqual(["raw", "raw", "raw", "raw"]);
      expect(column("x-stainless-read-timeout")).toEqual(["45", "45", "45", "45"]);
      const accepted = dialect === "proto" ? "application/x-protobuf" : "application/json";
      expect(column("accept")).toEqual([accepted, accepted, accepted, "application/json"]);
      expect(seen[0]!.json).toEqual({ request_id: "request-1", allow_metadata_only: true });
    });

    it.for([408, 500, 502, 503, 599])(
      "asks again at once after %i",
      async (status, { service }) => {
        const training = await start(service);
        service.server.script("retrieveFuture", bare(status));
        await training.optimStep();
        expect(polls(service)).toHaveLength(2);
        expect(service.clock.sleeps).toEqual([]);
      },
    );

    it("backs off from a failing server", async ({ service }) => {
      const training = await start(service);
      service.server.script("retrieveFuture", ...Array.from({ length: 10 }, () => bare(500)));
      await training.optimStep();
      expect(service.clock.sleeps).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    });

    it("backs off from a server that does not hold polls", async ({ service }) => {
      const training = await start(service);
      service.server.script(
        "retrieveFuture",
        ...Array.from({ length: 12 }, () => json(tryAgain())),
      );
      await training.optimStep();
      expect(service.clock.sleeps).toEqual([10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
    });

    it.for([
      ["lost connections", drop("before")],
      ["broken bodies", drop("inBody")],
      ["empty 400s", bare(400)],
      ["429", json({}, 429)],
    ] as const)("waits longer and longer after %s", async ([, reply], { service }) => {
      const training = await start(service);
      service.server.script("retrieveFuture", ...Array.from({ length: 7 }, () => reply));
      const future = training.optimStep();
      await future;
      expect(service.clock.sleeps).toEqual([1, 2, 4, 8, 16, 30, 30].map((s) => s * 1000));
      expect(future.attempts).toHaveLength(7);
      expect(future.attempts[0]).toMatchObject({ delayMs: 1000 });
    });

    it("restarts the count after a response", async ({ service }) => {
      const training = await start(service);
      const lost = drop("before");
      service.server.script("retrieveFuture", lost, lost, json(tryAgain()), lost, bare(500), lost);
      await training.optimStep();
      expect(service.clock.sleeps).toEqual([1000, 2000, 1000, 1000]);
    });

    it("treats silence for 45 s as a lost connection", async ({ service }) => {
      const training = await start(service);
      service.clock.isManual = true;
      service.server.script("retrieveFuture", stall);
      const future = training.optimStep();
      await service.server.until(() => polls(service).length === 1);
      await settle(10);
      await service.clock.advance(45_000);
      expect(future.attempts).toMatchObject([{ status: null, delayMs: 1000 }]);
      await service.clock.advance(1000);
      await future;
    });

    it("tolerates three 400s with a body in total", async ({ service }) => {
      const training = await start(service);
      const bad = json({ detail: "odd" }, 400);
      service.server.script("retrieveFuture", bad, json(tryAgain()), bad, bad);
      await training.optimStep();
      service.server.script("retrieveFuture", bad, bad, bad, bad);
      await expect(training.optimStep()).rejects.toMatchObject({
        name: "ResultError",
        cause: { status: 400 },
      });
      // A 408 with a body shows that the server knows the request.
      service.server.script("retrieveFuture", bad, bad, bad, json(tryAgain(), 408), bad, bad, bad);
      await training.optimStep();
    });

    it.for([401, 403, 404, 409, 418, 422])(
      "ends with a ResultError after %i",
      async (status, { service }) => {
        const training = await start(service);
        service.server.script("retrieveFuture", json({ detail: "no" }, status));
        const error = await training.optimStep().catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(ResultError);
        expect(error).toMatchObject({
          requestId: "request-1",
          cause: { status },
          isUserError: true,
        });
        expect(polls(service)).toHaveLength(1);
      },
    );

    it("reports an expired result after 410", async ({ service }) => {
      const training = await start(service);
      service.server.script("retrieveFuture", bare(410));
      const error = await training.optimStep().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(RequestExpiredError);
      expect(error).toMatchObject({ requestId: "request-1", isRetryable: true });
    });

    it("retries 402, and fails after the limit", async ({ service }) => {
      service.flags["billing_exception_max_pause_duration_sec"] = 30;
      const training = await start(service);
      service.server.script("retrieveFuture", json({ detail: "pay" }, 402), json(tryAgain()));
      const future = training.optimStep();
      const states: string[] = [];
      future.onState(({ state, reason }) => states.push(`${state} ${reason ?? ""}`.trim()));
      await future;
      expect(service.clock.sleeps).toEqual([5000]);
      expect(states.slice(0, 3)).toEqual([
        "running",
        expect.stringMatching(/^paused .*pay/),
        "running",
      ]);
      service.server.handle("retrieveFuture", () => json({ detail: "pay" }, 402));
      await expect(training.optimStep()).rejects.toMatchObject({ cause: { status: 402 } });
    });
  });

  describe("an answer", () => {
    it.for([
      ["paused_capacity", undefined, "Tinker backend is running short on capacity, please wait"],
      ["paused_rate_limit", undefined, "concurrent training clients rate limit hit"],
      ["paused_rate_limit", "your account", "your account"],
      ["unknown", "maintenance", "maintenance"],
      ["brand_new_state", "something", "something"],
    ] as const)(
      "of state %s and reason %s is reported to the caller and logged",
      async ([state, reason, words], { service }) => {
        for (const reply of [json(tryAgain(state, reason)), json(tryAgain(state, reason), 408)]) {
          service.log.length = 0;
          const training = await start(service);
          service.clock.isManual = true;
          let release = (): void => {};
          const held = new Promise<void>((resolve) => (release = resolve));
          service.server.script("retrieveFuture", reply, async (response, request) => {
            await held;
            await service.result(request)(response, request);
          });
          const future = training.optimStep();
          await service.server.until(() => polls(service).length === 2);
          expect(future.state).toBe("paused");
          expect(future.status.reason).toBe(words);
          release();
          await future;
          service.clock.isManual = false;
          expect(service.log).toContainEqual(
            `warn Training is paused for ${training.modelId}. Reason: ${words}`,
          );
        }
      },
    );

    it("of an unknown state without a reason is not logged; an active one ends a pause", async ({
      service,
    }) => {
      const training = await start(service);
      service.server.script(
        "retrieveFuture",
        json(tryAgain("nonsense")),
        json(tryAgain("paused_capacity")),
        json(tryAgain("active")),
      );
      const states: string[] = [];
      const future = training.optimStep();
      future.onState(({ state, queueState }) => states.push(`${state} ${queueState}`));
      await future;
      expect(states).toEqual([
        "running null",
        "paused paused_capacity",
        "running active",
        "done active",
      ]);
      expect(service.log.filter((line) => line.startsWith("warn"))).toHaveLength(1);
    });

    it("about the queue is logged once a minute and reported to listeners each time", async ({
      service,
    }) => {
      const events: ClientEvent[] = [];
      const client = service.client({ onEvent: (event) => events.push(event) });
      const training = await client.createLoraTrainingClient({ baseModel: "m" });
      const paused = json(tryAgain("paused_capacity"));
      service.server.script("retrieveFuture", ...Array.from({ length: 80 }, () => paused));
      await training.optimStep();
      expect(service.log.filter((line) => line.includes("is paused"))).toHaveLength(2);
      expect(events.filter(({ type }) => type === "queueState")).toHaveLength(80);
    });

    it("that names only the size is followed by the result, within the limit of bytes", async ({
      service,
    }) => {
      service.flags["inflight_response_bytes_semaphore_size"] = 100;
      const training = await start(service);
      const announced = json({ status: "complete_metadata", response_payload_size: 1000 });
      service.server.script("retrieveFuture", announced);
      const first = training.forwardBackward([datum], "cross_entropy");
      await first;
      expect(polls(service).map((request) => request.json?.["allow_metadata_only"])).toEqual([
        true,
        false,
      ]);
      // The room is free again: also after a failure.
      service.server.script(
        "retrieveFuture",
        announced,
        json({ error: "broke", category: "server" }),
      );
      await expect(training.optimStep()).rejects.toBeInstanceOf(RequestFailedError);
      service.server.script("retrieveFuture", announced);
      await training.optimStep();
      service.server.script("retrieveFuture", announced, announced);
      await expect(training.optimStep()).rejects.toThrow(/announced .* twice/);
    });

    it.for([
      ["user", true],
      ["server", false],
      ["unknown", false],
      ["SERVER", false],
      ["brand new", false],
      [undefined, false],
    ] as const)("of failure with category %s", async ([category, isUser], { service }) => {
      const training = await start(service);
      service.server.script("retrieveFuture", json({ error: "out of range", category }));
      const error = await training.optimStep().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(RequestFailedError);
      expect(error).toMatchObject({
        message: "out of range",
        requestId: "request-1",
        isUserError: isUser,
      });
    });

    it.for([
      ["a truncated protobuf body", proto(Buffer.from("0a1608", "hex"))],
      ["a protobuf body of another type", proto(encodeProto("SampleResponse", { sequences: [] }))],
      ["JSON of another shape", json({ loss_fn_outputs: 5 })],
      ["text", bytes(Buffer.from("<html>"), 200, { "content-type": "text/html" })],
      ["nothing", bytes(new Uint8Array())],
    ] as const)("of %s is an error that names the request", async ([label, reply], { service }) => {
      const training = await start(service);
      service.server.script("retrieveFuture", reply);
      const future = training.forwardBackward([datum], "cross_entropy");
      if (label === "a protobuf body of another type") {
        // An empty message is a valid message of every type: it has no outputs.
        expect((await future).lossFnOutputs).toEqual([]);
      } else {
        await expect(future).rejects.toMatchObject({ name: "ResultError", requestId: "request-1" });
      }
    });

    it("in protobuf for a result that has no such form is refused", async ({ service }) => {
      const training = await start(service);
      service.server.script("retrieveFuture", proto(new Uint8Array([1])));
      await expect(training.optimStep()).rejects.toThrow(/sent protobuf, expected JSON/);
    });

    it("in JSON for a result that has a protobuf form is read", async ({ service }) => {
      const training = await start(service);
      const output = {
        lossFnOutputType: "T",
        lossFnOutputs: [{ logprobs: { data: new Float32Array([-1]) } }],
        metrics: { "loss:sum": 2 },
      };
      service.server.script("retrieveFuture", json(encodeJson("ForwardBackwardOutput", output)));
      const { lossFnOutputs, metrics } = await training.forwardBackward([datum], "cross_entropy");
      expect(lossFnOutputs[0]!["logprobs"]!.toList()).toEqual([-1]);
      expect(metrics).toEqual({ "loss:sum": 2 });
    });

    it("that is compressed is unpacked; a damaged one is a broken connection", async ({
      service,
    }) => {
      const training = await start(service);
      const packed = gzipSync(JSON.stringify({ metrics: { "x:sum": 1 } }));
      const headers = { "content-type": "application/json", "content-encoding": "gzip" };
      service.server.script(
        "retrieveFuture",
        bytes(packed.subarray(0, 20), 200, headers),
        bytes(packed, 200, { ...headers, "content-encoding": "unheard-of" }),
        bytes(packed, 200, headers),
      );
      expect((await training.optimStep()).metrics).toEqual({ "x:sum": 1 });
      expect(service.clock.sleeps).toEqual([1000, 2000]);
    });
  });

  describe("the last answer of a future", () => {
    it("is readable while it goes on", async ({ service }) => {
      const training = await start(service);
      service.clock.isManual = true;
      service.server.script("retrieveFuture", json(tryAgain("active", "4 before it")), hang);
      const future = training.optimStep();
      expect(future.status.lastAnswer).toBeNull();
      await service.server.until(() => polls(service).length === 2);
      expect(future.status.lastAnswer).toEqual({
        status: 200,
        message: "4 before it",
        time: service.clock.wallTime(),
      });
      future.cancel();
      await expect(future).rejects.toThrow();
      service.clock.isManual = false;
    });

    it("names a refusal that repeats, which is logged too", async ({ service }) => {
      const client = service.client();
      const sampling = await client.createSamplingClient({ baseModel: "m" });
      service.server.script("sample", ...Array(5).fill(json({ detail: "too many samplers" }, 429)));
      const future = sampling.sample({ prompt: [1] });
      const seen: (number | null | undefined)[] = [];
      future.onState(({ lastAnswer }) => seen.push(lastAnswer?.status));
      await future;
      expect(seen).toContain(429);
      expect(future.attempts).toHaveLength(5);
      expect(service.log).toContainEqual(expect.stringMatching(/sample keeps failing.*too many/));
    });
  });

  it("an unknown request is a NotFoundError in the chain of causes", async ({ service }) => {
    const training = await start(service);
    service.server.script("optimStep", json({ request_id: "nobody-knows" }));
    const error = await training.optimStep().catch((caught: unknown) => caught);
    expect((error as Error).cause).toBeInstanceOf(NotFoundError);
  });
});

describe("a result that comes with the acceptance", () => {
  const along = { "x-tinker-result-of": "session-0:train:0:1" };
  const step = (service: FakeService) =>
    start(service).then((training) => training.optimStep({ learningRate: 1 }));

  it("is used without a poll", async ({ service }) => {
    const training = await start(service);
    service.server.script("optimStep", json({ metrics: { "lr:mean": 7 } }, 200, along));
    const future = training.optimStep({ learningRate: 1 });
    expect(await future).toMatchObject({ metrics: { "lr:mean": 7 } });
    expect(future.requestId).toBe("session-0:train:0:1");
    const output = { lossFnOutputType: "x", lossFnOutputs: [], metrics: { "loss:sum": 5 } };
    const packed = encodeProto("ForwardBackwardOutput", output);
    const headers = { ...along, "content-type": "application/x-protobuf" };
    service.server.script("forwardBackward", bytes(packed, 200, headers));
    const pass = await training.forwardBackward([datum], "cross_entropy");
    expect(pass.metrics).toMatchObject({ "loss:sum": 5 });
    expect(polls(service)).toEqual([]);
  });

  it("may be a failure", async ({ service }) => {
    const failure = json({ error: "no such thing", category: "user" }, 200, along);
    service.server.script("optimStep", failure);
    await expect(step(service)).rejects.toThrow(RequestFailedError);
  });

  it("is requested only if no other operation waits", async ({ service }) => {
    const training = await start(service);
    await training.trainStep([datum], "cross_entropy", { adamParams: { learningRate: 1 } });
    const asks = (endpoint: "forwardBackward" | "optimStep") =>
      service.server.requestsTo(endpoint).map(({ headers }) => headers["x-tinker-hold-ms"]);
    expect(asks("forwardBackward")).toEqual([undefined]);
    expect(asks("optimStep")).toEqual(["50"]);
  });
});
