import { getEventListeners } from "node:events";
import { APITimeoutError, ApiFuture, CancelledError, type FutureStatus } from "tinker-ts";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { hang, json, type Reply } from "../support/scripted-server.js";
import { datum, describeDialects, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

const open = (service: FakeService) =>
  service.client().createLoraTrainingClient({ baseModel: "m" });

describeDialects(() => {
  describe("a future", () => {
    it("gives the same result on every await", async ({ service }) => {
      const training = await open(service);
      const future = training.forwardBackward([datum], "cross_entropy");
      expect(future).toBeInstanceOf(ApiFuture);
      const [first, second] = await Promise.all([future, future.result()]);
      expect(second).toBe(first);
      expect(await future).toBe(first);
      expect(service.server.requestsTo("forwardBackward")).toHaveLength(1);
    });

    it("is submitted when it is called, not when it is awaited", async ({ service }) => {
      const training = await open(service);
      const future = training.optimStep();
      await service.server.until(() => service.server.requestsTo("optimStep").length === 1);
      await future;
    });

    it("that fails unobserved causes no unhandled rejection, and can be observed later", async ({
      service,
    }) => {
      const unhandled: unknown[] = [];
      const listener = (reason: unknown): void => void unhandled.push(reason);
      process.on("unhandledRejection", listener);
      const training = await open(service);
      service.server.script("optimStep", json({ detail: "no" }, 400));
      const future = training.optimStep();
      await service.server.until(() => service.server.requestsTo("optimStep").length === 1);
      await settle(20);
      process.off("unhandledRejection", listener);
      expect(unhandled).toEqual([]);
      expect(future.state).toBe("failed");
      await expect(future).rejects.toMatchObject({ status: 400 });
    });

    it("works like a promise", async ({ service }) => {
      const training = await open(service);
      let isOver = false;
      await training.optimStep().finally(() => (isOver = true));
      expect(isOver).toBe(true);
      service.server.script("optimStep", json({}, 400));
      expect(await training.optimStep().catch(() => "caught")).toBe("caught");
      expect(Object.prototype.toString.call(training.optimStep())).toBe("[object ApiFuture]");
    });

    it("shows its state, its request and its timings", async ({ service }) => {
      const training = await open(service);
      let answer = (): void => {};
      const held: Reply = async (response, request) => {
        await new Promise<void>((resolve) => (answer = resolve));
        await service.result(request)(response, request);
      };
      service.server.script("retrieveFuture", held);
      const future = training.forwardBackward([datum], "cross_entropy");
      expect(future).toMatchObject({ state: "queued", requestId: null });
      await service.server.until(() => future.status.pollCount === 1);
      expect(future).toMatchObject({ state: "running", requestId: "request-1" });
      await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 2);
      await service.clock.advance(1_500);
      answer();
      await future;
      expect(future.state).toBe("done");
      expect(future.timings).toMatchObject({ queueMs: 1_500 });
      for (const phase of Object.values(future.timings)) expect(phase).toBeGreaterThanOrEqual(0);
      expect(future.status).toEqual({
        state: "done",
        reason: null,
        queueState: null,
        requestIds: ["request-1"],
        pollCount: 1,
        lastAnswer: null,
      } satisfies FutureStatus);
    });

    it("can be followed by listener and by iteration, until it has settled", async ({
      service,
    }) => {
      const training = await open(service);
      const paused = { type: "try_again", request_id: "r", queue_state: "paused_capacity" };
      service.server.script("retrieveFuture", json(paused));
      const future = training.optimStep();
      const states: string[] = [];
      const stopped: string[] = [];
      future.onState(({ state }) => states.push(state));
      future.onState(({ state }) => stopped.push(state))();
      const iterated: string[] = [];
      for await (const { state } of future) iterated.push(state);
      await future;
      expect(states).toEqual(["running", "paused", "done"]);
      expect(iterated).toEqual(["queued", "running", "paused", "done"]);
      expect(stopped).toEqual([]);
      const late: string[] = [];
      for await (const { state } of future) late.push(state);
      expect(late).toEqual(["done"]);
    });

    it("is not affected by a listener that throws", async ({ service }) => {
      const training = await open(service);
      const future = training.optimStep();
      future.onState(() => {
        throw new Error("broken listener");
      });
      await future;
      expect(service.log).toContainEqual(expect.stringContaining("broken listener"));
    });

    it("can stop being iterated early", async ({ service }) => {
      const training = await open(service);
      const future = training.optimStep();
      for await (const { state } of future) {
        expect(state).toBe("queued");
        break;
      }
      await future;
    });
  });

  describe("waiting for a result", () => {
    it("has its own timeout, which does not end the operation", async ({ service }) => {
      const training = await open(service);
      service.clock.isManual = true;
      let answer = (): void => {};
      service.server.script("retrieveFuture", async (response, request) => {
        await new Promise<void>((resolve) => (answer = resolve));
        await service.result(request)(response, request);
      });
      const future = training.optimStep();
      const waiting = expect(future.result({ timeoutMs: 1_000 })).rejects.toBeInstanceOf(
        APITimeoutError,
      );
      const controller = new AbortController();
      const other = future.result({ signal: controller.signal, timeoutMs: 9_000 });
      controller.abort(new Error("not so long"));
      await expect(other).rejects.toThrow("not so long");
      await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 2);
      await service.clock.advance(1_000);
      await waiting;
      expect(future.state).toBe("running");
      answer();
      await future;
      expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    });
  });

  describe("cancelling", () => {
    it("a future ends the polling", async ({ service }) => {
      const training = await open(service);
      service.server.handle("retrieveFuture", () => hang);
      const future = training.optimStep();
      await service.server.until(() => future.status.pollCount === 1);
      future.cancel();
      await expect(future).rejects.toBeInstanceOf(CancelledError);
      const reason = new Error("mine");
      const other = training.optimStep();
      other.cancel(reason);
      await expect(other).rejects.toBe(reason);
    });

    it("by a shared signal leaves no listener, also for a thousand calls", async ({ service }) => {
      const sampling = await service.client().createSamplingClient({ baseModel: "m" });
      const warnings: string[] = [];
      const listener = ({ name }: Error): void => void warnings.push(name);
      process.on("warning", listener);
      const { signal } = new AbortController();
      await Promise.all(
        Array.from({ length: 1000 }, () => sampling.sample({ prompt: [1], signal })),
      );
      await settle();
      process.off("warning", listener);
      expect(warnings).toEqual([]);
      expect(getEventListeners(signal, "abort")).toEqual([]);
    });

    it("by closing the client ends all operations, and rejects later calls at once", async ({
      service,
    }) => {
      const client = service.client();
      const training = await client.createLoraTrainingClient({ baseModel: "m" });
      const sampling = await client.createSamplingClient({ baseModel: "m" });
      service.server.handle("retrieveFuture", () => hang);
      const futures = [
        training.optimStep(),
        training.optimStep(),
        sampling.sample({ prompt: [1] }),
      ];
      await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 4);
      await client.close();
      for (const future of futures) await expect(future).rejects.toBeInstanceOf(CancelledError);
      await expect(training.optimStep()).rejects.toBeInstanceOf(CancelledError);
      await expect(sampling.sample({ prompt: [1] })).rejects.toBeInstanceOf(CancelledError);
      await expect(client.getServerCapabilities()).rejects.toBeInstanceOf(CancelledError);
      await expect(client.createRestClient().listSessions()).rejects.toBeInstanceOf(CancelledError);
      await client.close();
    });
  });
});
