/** A piece of a step's time, in seconds from the step's first span. */
export interface Span {
  /** What was done. */
  readonly name: string;
  /** When it began, in seconds since the start of the step. */
  readonly startSeconds: number;
  /** When it ended, in seconds since the start of the step. */
  readonly endSeconds: number;
}

/** Takes the time of what is done within one step. */
export class StepSpans {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #spans: Span[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#startedAt = now();
  }

  /** All spans so far, in the order in which they ended. */
  get spans(): readonly Span[] {
    return this.#spans;
  }

  /** Does something and takes its time, whether it succeeds or not. */
  async span<T>(name: string, work: () => PromiseLike<T> | T): Promise<T> {
    const startSeconds = this.#seconds();
    try {
      return await work();
    } finally {
      this.#spans.push({ name, startSeconds, endSeconds: this.#seconds() });
    }
  }

  /** `time/NAME` for a span that occurred once, else its total, count, mean and maximum; `time/total`. */
  metrics(): Record<string, number> {
    const byName = new Map<string, number[]>();
    for (const { name, startSeconds, endSeconds } of this.#spans) {
      byName.set(name, [...(byName.get(name) ?? []), endSeconds - startSeconds]);
    }
    const result: Record<string, number> = {};
    for (const [name, durations] of byName) {
      const total = durations.reduce((sum, duration) => sum + duration, 0);
      if (durations.length === 1) {
        result[`time/${name}`] = total;
        continue;
      }
      result[`time/${name}:total`] = total;
      result[`time/${name}:count`] = durations.length;
      result[`time/${name}:mean`] = total / durations.length;
      result[`time/${name}:max`] = Math.max(...durations);
    }
    result["time/total"] = this.#seconds();
    return result;
  }

  #seconds(): number {
    return (this.#now() - this.#startedAt) / 1000;
  }
}
