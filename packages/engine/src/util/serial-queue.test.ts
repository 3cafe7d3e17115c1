import { describe, expect, it } from "vitest";
import { Deferred, SerialQueue } from "./turns.js";

describe("SerialQueue", () => {
  it("runs tasks in order, also after one that fails", async () => {
    const queue = new SerialQueue();
    const seen: number[] = [];
    const gate = new Deferred<void>();
    const first = queue.add(async () => {
      await gate.promise;
      seen.push(1);
      throw new Error("broken");
    });
    const second = queue.add(() => seen.push(2));
    gate.resolve();
    await expect(first).rejects.toThrow("broken");
    await second;
    expect(seen).toEqual([1, 2]);
  });

  it("rejects a waiting task on abort and never starts it", async () => {
    const queue = new SerialQueue();
    const gate = new Deferred<void>();
    const seen: string[] = [];
    const running = queue.add(() => gate.promise);
    const controller = new AbortController();
    const waiting = queue.add(() => seen.push("aborted"), controller.signal);
    const last = queue.add(() => seen.push("last"));
    controller.abort(new Error("no longer wanted"));
    await expect(waiting).rejects.toThrow("no longer wanted");
    gate.resolve();
    await Promise.all([running, last]);
    expect(seen).toEqual(["last"]);
  });

  it("does not abort a started task", async () => {
    const queue = new SerialQueue();
    const started = new Deferred<void>();
    const gate = new Deferred<string>();
    const controller = new AbortController();
    const running = queue.add(() => {
      started.resolve();
      return gate.promise;
    }, controller.signal);
    await started.promise;
    controller.abort();
    gate.resolve("done");
    expect(await running).toBe("done");
  });
});
