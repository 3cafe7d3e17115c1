import { setMaxListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import type { ServerScheduler } from "./scheduler.js";

/** Longest slice of work, and longest time for which requests begin, before everything else has its turn. */
const [sliceMs, burstMs] = [10, 5];
/** What is shorter is followed by the next piece of work at once. */
const shortMs = 1;
/** What a millisecond costs, as tokens of the other resources. */
const costPerMs = 64;

/**
 * The event loop as something scarce.
 *
 * - Work that may take long is a generator that pauses often. It has one slice in a turn of the event loop, and owners
 *   take turns at slices by the time that theirs have taken.
 * - Requests that become readable together begin a few at a time.
 */
export class LoopTurns {
  readonly #scheduler: ServerScheduler;
  readonly #never = new AbortController().signal;
  #endsAt = 0;
  #isOpen = false;

  constructor(scheduler: ServerScheduler) {
    this.#scheduler = scheduler;
    setMaxListeners(0, this.#never);
  }

  /** Resolves when this turn of the event loop has time for one more request. */
  async enter(): Promise<void> {
    while (!this.#hasTime()) await setImmediate();
  }

  /** Does work in slices. */
  async run<T>(owner: string, work: Generator<void, T, void>): Promise<T> {
    for (;;) {
      const turn = await this.#scheduler.turn({ resource: "loop", owner, group: "" }, this.#never);
      const startedAt = performance.now();
      let tookMs = 0;
      try {
        do {
          const { done, value } = work.next();
          tookMs = performance.now() - startedAt;
          if (done) return value;
        } while (tookMs < sliceMs);
      } finally {
        const end = (): void => turn.end(tookMs * costPerMs);
        if (tookMs < shortMs) end();
        else void setImmediate().then(end);
      }
    }
  }

  #hasTime(): boolean {
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.#endsAt = performance.now() + burstMs;
      void setImmediate().then(() => {
        this.#isOpen = false;
      });
    }
    return performance.now() < this.#endsAt;
  }
}
