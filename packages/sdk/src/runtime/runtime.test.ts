import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { abortable, Canceller, onAbort, sleep } from "./cancellation.js";
import { systemClock } from "./clock.js";
import { EventHub } from "./events.js";
import { defaultLogger } from "./logger.js";
import { Semaphore } from "./semaphore.js";
import { yieldToEventLoop } from "./yield-to-event-loop.js";

describe("waiting", () => {
  it("sleeps until it is aborted, and leaves no listener either way", async () => {
    const controller = new AbortController();
    await sleep(systemClock, 1, controller.signal);
    const sleeping = sleep(systemClock, 60_000, controller.signal);
    controller.abort(new Error("enough"));
    await expect(sleeping).rejects.toThrow("enough");
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("abortable stops waiting, while the promise continues", async () => {
    const canceller = new Canceller();
    const waiting = abortable(new Promise(() => {}), canceller);
    canceller.abort("reason");
    await expect(waiting).rejects.toBe("reason");
    await expect(abortable(Promise.resolve(1), canceller)).rejects.toBe("reason");
    await expect(abortable(Promise.resolve(1))).resolves.toBe(1);
  });
});

describe("cancellation", () => {
  it("puts one listener on a signal for any number of listeners, and removes it with the last", () => {
    const { signal } = new AbortController();
    const stops = Array.from({ length: 100 }, () => onAbort(signal, () => {}));
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    for (const stop of stops) {
      stop();
      stop();
    }
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it.each(["AbortController", "Canceller"] as const)(
    "notifies every listener once (%s)",
    (kind) => {
      const source = kind === "Canceller" ? new Canceller() : new AbortController();
      const signal = source instanceof Canceller ? source : source.signal;
      const received: unknown[] = [];
      const listener = (reason: unknown): void => void received.push(reason);
      onAbort(signal, listener);
      onAbort(signal, listener);
      onAbort(signal, listener)();
      source.abort("why");
      source.abort("again");
      onAbort(signal, (reason) => received.push(`late ${String(reason)}`));
      expect(received).toEqual(["why", "why", "late why"]);
      expect(() => signal.throwIfAborted()).toThrow();
    },
  );
});

describe("a semaphore", () => {
  it("serves in order and skips aborted waiters", async () => {
    const semaphore = new Semaphore(1);
    await semaphore.acquire(1);
    const order: string[] = [];
    const gone = new Canceller();
    const first = semaphore.acquire(1).then(() => order.push("first"));
    const second = semaphore.acquire(1, gone).catch(() => order.push("gave up"));
    const third = semaphore.acquire(1).then(() => order.push("third"));
    gone.abort("x");
    await second;
    semaphore.release();
    await first;
    semaphore.release();
    await third;
    expect(order).toEqual(["gave up", "first", "third"]);
    expect(semaphore.tryAcquire()).toBe(false);
    semaphore.release();
    expect(semaphore.tryAcquire()).toBe(true);
  });

  it("rejects at once if already aborted", async () => {
    const gone = new Canceller();
    gone.abort(new Error("gone"));
    await expect(new Semaphore(1).acquire(1, gone)).rejects.toThrow("gone");
  });
});

describe("a byte semaphore", () => {
  it("admits a request of any size, alone", async () => {
    const semaphore = new Semaphore(10);
    await semaphore.acquire(1_000);
    expect(semaphore.left).toBe(-990);
    let hasPassed = false;
    const next = semaphore.acquire(1).then(() => (hasPassed = true));
    await yieldToEventLoop();
    expect(hasPassed).toBe(false);
    semaphore.release(1_000);
    await next;
    expect(semaphore.left).toBe(9);
  });

  it("never admits a request while the balance is negative, and loses no byte", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ size: fc.nat(50), gaveUp: fc.boolean() }), { maxLength: 40 }),
        async (requests) => {
          const semaphore = new Semaphore(20);
          const held: number[] = [];
          const waiting = requests.map(async ({ size, gaveUp }) => {
            const canceller = new Canceller();
            const passing = semaphore.acquire(size, canceller);
            if (gaveUp) canceller.abort("x");
            await passing.then(
              () => held.push(size),
              () => {},
            );
          });
          for (let round = 0; round < requests.length; round++) {
            await yieldToEventLoop();
            // At most one request may have taken the balance below zero.
            const largest = Math.max(0, ...held);
            expect(semaphore.left).toBeGreaterThanOrEqual(-largest);
            const size = held.shift();
            if (size !== undefined) semaphore.release(size);
          }
          await Promise.all(waiting);
          for (const size of held) semaphore.release(size);
          expect(semaphore.left).toBe(20);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("events and logs", () => {
  it("a listener that throws is reported once and does not disturb the others", () => {
    const lines: string[] = [];
    const silent = (): void => {};
    const hub = new EventHub({
      debug: silent,
      info: silent,
      warn: silent,
      error: (line) => lines.push(line),
    });
    const received: string[] = [];
    hub.subscribe(() => {
      throw new Error("broken listener");
    });
    const stop = hub.subscribe(({ type }) => received.push(type));
    hub.emit({ type: "sessionStart", sessionId: "s" });
    hub.emit({ type: "sessionStart", sessionId: "s" });
    stop();
    hub.emit({ type: "sessionStart", sessionId: "s" });
    expect(received).toEqual(["sessionStart", "sessionStart"]);
    expect(lines).toEqual([expect.stringContaining("broken listener")]);
  });

  it.each([
    [undefined, ["warn", "error"]],
    ["info", ["info", "warn", "error"]],
    ["DEBUG", ["debug", "info", "warn", "error"]],
  ])("TINKER_LOG=%s writes %j", (level, expected) => {
    const written: string[] = [];
    const original = console.warn;
    console.warn = (line: string) => void written.push(line.split(" ")[1]!.replace(":", ""));
    try {
      const logger = defaultLogger({ TINKER_LOG: level });
      for (const name of ["debug", "info", "warn", "error"] as const) logger[name]("x");
    } finally {
      console.warn = original;
    }
    expect(written).toEqual(expected);
  });
});
