/** How often a lookout looks, and how long whoever asks waits for it. */
export interface LookoutOptions {
  readonly everyMs: number;
  readonly patienceMs: number;
}

/** Looks for what is new, now and then; whoever asks waits a moment, and the look goes on in the background. */
export class Lookout {
  readonly #lookNow: () => Promise<void>;
  readonly #options: LookoutOptions;
  #looking: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(lookNow: () => Promise<void>, options: LookoutOptions) {
    this.#lookNow = lookNow;
    this.#options = options;
  }

  async look(): Promise<void> {
    const { everyMs, patienceMs } = this.#options;
    if (performance.now() - this.#lookedAt > everyMs) {
      this.#looking ??= this.#lookNow().finally(() => {
        this.#looking = undefined;
        this.#lookedAt = performance.now();
      });
    }
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, patienceMs);
    });
    await Promise.race([this.#looking, late]).finally(() => clearTimeout(timer));
  }
}
