import type { Clock } from "../../src/time/clock.js";

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is told to go on. */
export class ManualClock implements Clock {
  #now: number;
  #elapsed = 0;
  #timers: Timer[] = [];

  constructor(now = Date.parse("2026-01-31T12:00:00Z")) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  /** Somebody sets the clock of the machine. */
  set(byMs: number): void {
    this.#now += byMs;
  }

  /** The process stands still and nothing that is due happens. */
  sleep(forMs: number): void {
    this.#now += forMs;
    this.#elapsed += forMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#elapsed + delayMs, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Goes on by this much and lets everything that is due happen, what follows from it included. */
  async advance(byMs: number): Promise<void> {
    const end = this.#elapsed + byMs;
    for (;;) {
      await settle();
      const [next] = this.#timers.toSorted((a, b) => a.at - b.at);
      if (!next || next.at > end) break;
      this.#goTo(next.at);
      this.#timers = this.#timers.filter((timer) => timer !== next);
      next.callback();
    }
    this.#goTo(end);
    await settle();
  }

  #goTo(elapsed: number): void {
    const byMs = Math.max(0, elapsed - this.#elapsed);
    this.#elapsed += byMs;
    this.#now += byMs;
  }
}

/** Lets pending promises, commits and file operations of this moment finish. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}
