import fc from "fast-check";
import {
  APIError,
  CancelledError,
  PartialCallError,
  TrainingOrderError,
  type ApiFuture,
  type TrainingClient,
} from "tinker-ts";
import { describe, expect } from "vitest";
import { FakeService, type ServerDialect } from "../support/fake-service.js";
import { ModelServer, type Fault } from "../support/model-server.js";
import { bare, drop, hang, json, type Reply } from "../support/scripted-server.js";
import { datum, describeDialects, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

/** Data with the chunk as first token; one datum is one chunk here. */
const chunked = (count: number) =>
  Array.from({ length: count }, (_, chunk) => ({
    modelInput: [chunk, 7],
    lossFnInputs: { target_tokens: [1, 2], weights: [1, 1] },
  }));

const pass = (training: TrainingClient, operation: number, chunks: number, signal?: AbortSignal) =>
  training.forwardBackward(chunked(chunks), "cross_entropy", {
    lossFnConfig: { operation },
    signal,
  });

const openTraining = (service: FakeService, isParallel = true) => {
  service.flags["fwdbwd_max_chunk_len"] = 1;
  service.flags["parallel_fwdbwd_chunks"] = isParallel;
  return service.client({ maxRetries: 2 }).createLoraTrainingClient({ baseModel: "m" });
};

it("makes room for the next bytes when some have been sent", async ({ service }) => {
  service.flags["fwdbwd_dispatch_bytes_semaphore_size"] = 0;
  const training = await openTraining(service);
  const model = new ModelServer(service);
  for (let operation = 0; operation < 3; operation++) await pass(training, operation, 2);
  expect(model.seqIds).toEqual([1, 2, 3, 4, 5, 6]);
});

interface PlannedOperation {
  readonly chunks: number;
  /** Faults of the attempts of each chunk (or of the step). */
  readonly faults: readonly (readonly Fault[])[];
  /** After how many rounds of the event loop the caller aborts; null for never. */
  readonly abortAfter: number | null;
}

const operations = (faults: readonly Fault[]) =>
  fc.array(
    fc.record({
      chunks: fc.integer({ min: 0, max: 4 }),
      faults: fc.array(fc.array(fc.constantFrom(...faults), { maxLength: 2 }), { maxLength: 5 }),
      abortAfter: fc.option(fc.nat(12), { freq: 3 }),
    }),
    { minLength: 1, maxLength: 8 },
  );

/** Runs operations; returns which succeeded, and their server. */
async function run(plan: readonly PlannedOperation[], isParallel: boolean, dialect: ServerDialect) {
  const service = await FakeService.start(dialect);
  const faults = new Map<string, Fault[]>();
  plan.forEach(({ chunks, faults: perChunk }, operation) => {
    if (chunks === 0) faults.set(`${operation}`, [...(perChunk[0] ?? [])]);
    for (let chunk = 0; chunk < chunks; chunk++) {
      faults.set(`${operation}.${chunk}`, [...(perChunk[chunk] ?? [])]);
    }
  });
  const model = new ModelServer(service, (label) => faults.get(label) ?? []);
  const training = await openTraining(service, isParallel);
  const aborting: Promise<void>[] = [];
  const futures = plan.map(({ chunks, abortAfter }, operation): ApiFuture<unknown> => {
    const controller = new AbortController();
    const { signal } = controller;
    if (abortAfter !== null) aborting.push(settle(abortAfter).then(() => controller.abort()));
    return chunks === 0
      ? training.optimStep({ learningRate: operation }, { signal })
      : pass(training, operation, chunks, signal);
  });
  const outcomes = await Promise.allSettled(futures);
  await Promise.all(aborting);
  // One more at the end: whatever happened before, it must run.
  const last = await Promise.allSettled([training.optimStep({ learningRate: plan.length })]);
  await service.close();
  return { model, outcomes: [...outcomes, ...last] };
}

const runs = process.env["TINKER_TS_TEST_FULL"] ? 1000 : 60;

describeDialects((dialect) => {
  describe("the order of operations", () => {
    it("is that of the calls, without gap or repeat, with any refusals and aborts", async () => {
      await fc.assert(
        fc.asyncProperty(
          operations(["refuse", "busy", "loseAnswer", "failAfterwards"]),
          fc.boolean(),
          async (plan, isParallel) => {
            // A chunk that is refused after an attempt of unknown fate leaves doubt, which has a test of its own.
            const certain = plan.map((operation) => ({
              ...operation,
              faults: operation.faults.map((list) =>
                list.includes("refuse") ? (["refuse"] as const) : list,
              ),
            }));
            const { model, outcomes } = await run(certain, isParallel, dialect);
            expect(model.seqIds).toEqual(model.accepted.map((_, index) => index + 1));
            expect(outcomes.at(-1)!.status).toBe("fulfilled");
            const inOrder = model.accepted.toSorted((a, b) => a.seqId - b.seqId);
            const labels = inOrder
              .filter(({ isForwardOnly }) => !isForwardOnly)
              .map(({ label }) => label);
            expect(new Set(labels).size).toBe(labels.length);
            const keys = labels.map((label) => label.split(".").map(Number));
            expect(keys).toEqual(
              keys.toSorted((a, b) => a[0]! - b[0]! || (a[1] ?? 0) - (b[1] ?? 0)),
            );
            outcomes.forEach(({ status }, operation) => {
              const chunks = plan[operation]?.chunks ?? 0;
              const expected =
                chunks === 0
                  ? [`${operation}`]
                  : Array.from({ length: chunks }, (_, chunk) => `${operation}.${chunk}`);
              if (status === "fulfilled") expect(labels).toEqual(expect.arrayContaining(expected));
            });
          },
        ),
        { numRuns: runs },
      );
    }, 120_000);

    it("every request is applied exactly once when answers are lost", async () => {
      const transient: Fault[] = ["busy", "loseAnswer", "failAfterwards", "drop"];
      await fc.assert(
        fc.asyncProperty(operations(transient), fc.boolean(), async (plan, isParallel) => {
          const patient = plan.map((operation) => ({ ...operation, abortAfter: null }));
          const { model, outcomes } = await run(patient, isParallel, dialect);
          expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => "fulfilled"));
          const requested = [...patient, { chunks: 0 }].flatMap(({ chunks }, operation) =>
            chunks === 0
              ? [`${operation}`]
              : Array.from({ length: chunks }, (_, chunk) => `${operation}.${chunk}`),
          );
          const applied = model.accepted.toSorted((a, b) => a.seqId - b.seqId);
          expect(applied.map(({ label }) => label)).toEqual(requested);
          expect(applied.map(({ seqId }) => seqId)).toEqual(requested.map((_, index) => index + 1));
        }),
        { numRuns: runs },
      );
    }, 120_000);
  });

  describe("chunks of one call", () => {
    it("go out in parallel, the first one last", async ({ service }) => {
      const model = new ModelServer(service);
      const training = await openTraining(service);
      const output = await pass(training, 0, 4);
      expect(model.accepted.at(-1)).toMatchObject({ seqId: 1, label: "0.0" });
      expect(model.seqIds).toEqual([1, 2, 3, 4]);
      expect(output.metrics).toEqual({ "loss:sum": 10 });
      expect(output.lossFnOutputs).toHaveLength(4);
    });

    it("are sent one by one if the server requires it", async ({ service }) => {
      const model = new ModelServer(service);
      const training = await openTraining(service, false);
      await pass(training, 0, 4);
      expect(model.accepted.map(({ label }) => label)).toEqual(["0.0", "0.1", "0.2", "0.3"]);
    });

    it("delay later operations until all of them are accepted", async ({ service }) => {
      const model = new ModelServer(service);
      const training = await openTraining(service);
      await Promise.all([pass(training, 0, 3), training.optimStep({ learningRate: 1 })]);
      expect(model.accepted.at(-1)).toMatchObject({ seqId: 4, label: "1" });
    });

    it("that are partly refused report what may have been applied, and later operations run", async ({
      service,
    }) => {
      const faults: Record<string, Fault[]> = { "0.2": ["refuse"] };
      const model = new ModelServer(service, (label) => faults[label] ?? []);
      const training = await openTraining(service);
      const error = await pass(training, 0, 4).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(PartialCallError);
      expect(error).toMatchObject({
        chunkCount: 4,
        failedChunks: [2],
        acceptedChunks: [1, 3],
        isUserError: true,
        cause: { status: 400 },
      });
      expect((error as Error).message).toMatch(/Chunk 3 of 4 failed.*chunk\(s\) 2, 4/s);
      await training.optimStep({ learningRate: 1 });
      const byNumber = model.accepted.toSorted((a, b) => a.seqId - b.seqId);
      expect(byNumber.map(({ label }) => label)).toEqual([
        "0.3 filler",
        "0.1",
        "0.3 filler",
        "0.3",
        "1",
      ]);
    });

    it("of which none was accepted leave their numbers to the next", async ({ service }) => {
      const faults: Record<string, Fault[]> = { "0.1": ["refuse"] };
      const model = new ModelServer(service, (label) => faults[label] ?? []);
      const training = await openTraining(service);
      await expect(pass(training, 0, 2)).rejects.toThrow(/accepted no chunk/);
      await training.optimStep({ learningRate: 1 });
      expect(model.accepted).toMatchObject([{ seqId: 1, label: "1" }]);
    });

    it("fail as a whole if one fails at the server, without waiting for the others", async ({
      service,
    }) => {
      const training = await openTraining(service);
      service.server.handle("retrieveFuture", (request) => {
        const isSecond = request.json?.["request_id"] === "request-2";
        return isSecond ? json({ error: "bad token", category: "user" }) : hang;
      });
      const error = await pass(training, 0, 3).catch((caught: unknown) => caught);
      expect(error).toMatchObject({
        name: "PartialCallError",
        failedChunks: [2],
        cause: { name: "RequestFailedError" },
      });
    });

    it("of a forward pass change nothing when they fail", async ({ service }) => {
      const training = await openTraining(service);
      service.server.script("forwardBackward", json({ detail: "no" }, 400));
      await expect(training.forward(chunked(2), "cross_entropy")).rejects.toThrow(
        /can be repeated/,
      );
    });
  });

  describe("an operation that is cancelled", () => {
    it("before its turn is never sent and leaves no gap", async ({ service }) => {
      const model = new ModelServer(service);
      const training = await openTraining(service);
      const controller = new AbortController();
      const first = training.optimStep({ learningRate: 0 });
      const second = training.optimStep({ learningRate: 1 }, { signal: controller.signal });
      const third = training.optimStep({ learningRate: 2 });
      controller.abort(new Error("changed my mind"));
      await expect(second).rejects.toThrow("changed my mind");
      await Promise.all([first, third]);
      expect(model.accepted).toMatchObject([
        { seqId: 1, label: "0" },
        { seqId: 2, label: "2" },
      ]);
    });

    it("before it was called takes no turn", async ({ service }) => {
      const model = new ModelServer(service);
      const training = await openTraining(service);
      const signal = AbortSignal.abort(new Error("too late"));
      await expect(training.optimStep({}, { signal })).rejects.toThrow("too late");
      await training.optimStep({ learningRate: 1 });
      expect(model.seqIds).toEqual([1]);
    });

    it("while it is being sent ends at once for the caller; the next waits until it is settled", async ({
      service,
    }) => {
      const model = new ModelServer(service);
      const training = await openTraining(service);
      let answer = (): void => {};
      const held: Reply = async (response) => {
        await new Promise<void>((resolve) => (answer = resolve));
        response.destroy();
      };
      service.server.script("optimStep", held);
      const first = training.optimStep({ learningRate: 0 });
      const second = training.optimStep({ learningRate: 1 });
      await service.server.until(() => service.server.requestsTo("optimStep").length === 1);
      first.cancel();
      await expect(first).rejects.toBeInstanceOf(CancelledError);
      await settle();
      expect(model.accepted).toEqual([]);
      answer();
      await second;
      // The request with an unknown outcome was resent until the outcome was known.
      expect(model.accepted).toMatchObject([
        { seqId: 1, label: "0" },
        { seqId: 2, label: "1" },
      ]);
    });

    it("by a timeout reports its state", async ({ service }) => {
      const training = await openTraining(service);
      service.clock.isManual = true;
      service.server.handle("retrieveFuture", () => hang);
      const future = training.optimStep({}, { timeoutMs: 5_000 });
      await service.server.until(() => future.status.pollCount > 0);
      await service.clock.advance(5_000);
      await expect(future).rejects.toThrow(
        /optimStep of session-0:train:0 was not finished after 5000 ms; it was running \(request request-1\)/,
      );
      expect(future.state).toBe("failed");
    });
  });

  describe("an operation with an unknown outcome", () => {
    it.for([
      ["lost connections", drop("before")],
      ["server errors", bare(500)],
      ["timeouts of a proxy", bare(504)],
      ["an acceptance that cannot be read", json({ accepted: true })],
    ] as const)("after %s stops the client with the reason", async ([, reply], { service }) => {
      const training = await openTraining(service);
      service.server.handle("optimStep", () => reply);
      const doubtful = training.optimStep({ learningRate: 0 });
      const queued = training.optimStep({ learningRate: 1 });
      await expect(doubtful).rejects.toBeInstanceOf(APIError);
      const error = await queued.catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(TrainingOrderError);
      expect((error as Error).message).toMatch(/optimStep \(seq_id 1\).*checkpoint/s);
      const sent = service.server.requestsTo("optimStep").length;
      await expect(training.forwardBackward([datum], "cross_entropy")).rejects.toBeInstanceOf(
        TrainingOrderError,
      );
      expect(service.server.requestsTo("optimStep")).toHaveLength(sent);
    });

    it("is certain when the server was never reached or refused it clearly", async ({
      service,
    }) => {
      const training = await openTraining(service);
      for (const status of [400, 401, 403, 404, 422, 429, 503]) {
        service.server.handle("optimStep", () => json({ detail: "no" }, status));
        await expect(training.optimStep()).rejects.toMatchObject({ status });
      }
      service.server.handle("optimStep", () => service.accept("OptimStepResponse", {}));
      await training.optimStep();
      expect(service.server.requestsTo("optimStep").at(-1)!.json).toMatchObject({ seq_id: 1 });
    });
  });

  describe("trainStep", () => {
    it("submits both parts before the first is done", async ({ service }) => {
      const training = await openTraining(service);
      let finishPass = (): void => {};
      const passed = new Promise<void>((resolve) => (finishPass = resolve));
      service.server.script("retrieveFuture", async (response, request) => {
        await passed;
        await service.result(request)(response, request);
      });
      const step = training.trainStep([datum], "cross_entropy", {
        adamParams: { learningRate: 2 },
      });
      await service.server.until(() => service.server.requestsTo("optimStep").length === 1);
      finishPass();
      expect(await step).toMatchObject({
        forwardBackward: { metrics: { "loss:sum": 1 } },
        optimStep: { metrics: { "lr:mean": 1 } },
      });
    });

    it("does not step when the pass was not accepted", async ({ service }) => {
      const training = await openTraining(service);
      service.server.script("forwardBackward", json({ detail: "bad data" }, 400));
      await expect(training.trainStep([datum], "cross_entropy")).rejects.toMatchObject({
        status: 400,
      });
      expect(service.server.requestsTo("optimStep")).toEqual([]);
      await training.trainStep([datum], "cross_entropy");
    });
  });
});
