import type { Clock, ScheduleOptions } from "tinker-ts";

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly isSleep: boolean;
  readonly run: () => void;
}

/**
 * A clock that tests control. Time stands still except for two things: `advance`, and sleeping. A sleeper
 * waits for nothing but time, so (unless `isManual`) the clock jumps to the earliest
 * wake-up as soon as waiting events have been served.
 */
export class TestClock implements Clock {
  /** Durations of all sleeps so far. */
  readonly sleeps: number[] = [];
  isManual = false;
  readonly #entries = new Set<Entry>();
  readonly #epoch = Date.UTC(2026, 0, 2, 3, 4, 5);
  #now = 0;
  #order = 0;
  #isPumping = false;

  /** Timers and sleepers that have not fired. */
  get pending(): number {
    return this.#entries.size;
  }

  now(): number {
    return this.#now;
  }

  wallTime(): number {
    return this.#epoch + this.#now;
  }

  schedule(durationMs: number, callback: () => void, options?: ScheduleOptions): () => void {
    const isSleep = options?.keepsAlive ?? false;
    const entry = { at: this.#now + durationMs, order: this.#order++, isSleep, run: callback };
    this.#entries.add(entry);
    if (isSleep) {
      this.sleeps.push(durationMs);
      this.#pump();
    }
    return () => this.#entries.delete(entry);
  }

  /** Lets time pass, firing whatever becomes due on the way. */
  async advance(durationMs: number): Promise<void> {
    const end = this.#now + durationMs;
    for (let next = this.#earliest(end); next; next = this.#earliest(end)) {
      this.#fire(next);
      await settle();
    }
    this.#now = end;
    await settle();
  }

  #pump(): void {
    if (this.isManual || this.#isPumping) return;
    this.#isPumping = true;
    void settle().then(() => {
      this.#isPumping = false;
      const sleeper = this.#earliest(Infinity, true);
      if (!sleeper) return;
      for (let due = this.#earliest(sleeper.at); due && due !== sleeper;) {
        this.#fire(due);
        due = this.#earliest(sleeper.at);
      }
      if (this.#entries.has(sleeper)) this.#fire(sleeper);
      this.#pump();
    });
  }

  #earliest(until: number, onlySleepers = false): Entry | undefined {
    let best: Entry | undefined;
    for (const entry of this.#entries) {
      if (entry.at > until || (onlySleepers && !entry.isSleep)) continue;
      if (!best || entry.at < best.at || (entry.at === best.at && entry.order < best.order)) {
        best = entry;
      }
    }
    return best;
  }

  #fire(entry: Entry): void {
    this.#entries.delete(entry);
    this.#now = Math.max(this.#now, entry.at);
    entry.run();
  }
}

/** Lets events that are already on their way be served. */
export async function settle(rounds = 3): Promise<void> {
  for (let round = 0; round < rounds; round++) await new Promise(setImmediate);
}
