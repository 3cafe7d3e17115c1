/** How often a poller polls, and how long callers wait for it. */
export interface PollerOptions {
  readonly everyMs: number;
  readonly waitMs: number;
}

/** Polls when it is asked and the last time is long enough ago; a poll that takes long continues in the background. */
export class Poller {
  readonly #pollNow: () => Promise<void>;
  readonly #options: PollerOptions;
  #polling: Promise<void> | undefined;
  #startedAt = Number.NEGATIVE_INFINITY;
  #endedAt = Number.NEGATIVE_INFINITY;

  constructor(pollNow: () => Promise<void>, options: PollerOptions) {
    this.#pollNow = pollNow;
    this.#options = options;
  }

  async poll(): Promise<void> {
    const { everyMs, waitMs } = this.#options;
    if (this.#polling === undefined && performance.now() - this.#endedAt > everyMs) {
      this.#startedAt = performance.now();
      this.#polling = this.#pollNow().finally(() => {
        this.#polling = undefined;
        this.#endedAt = performance.now();
      });
    }
    const leftMs = this.#startedAt + waitMs - performance.now();
    if (this.#polling === undefined || leftMs <= 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, leftMs);
    });
    await Promise.race([this.#polling, late]).finally(() => clearTimeout(timer));
  }
}
