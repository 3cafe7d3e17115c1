/** Longest time that requests may take the event loop for before everything else gets its turn. */
const budgetMs = 5;

/**
 * Spreads a burst of requests over turns of the event loop. Hundreds of them can become readable in the
 * same turn; without this, timers and finished answers would wait until the last one was worked on.
 */
export class TurnBudget {
  #endsAt = 0;
  #isOpen = false;

  /** Resolves when this turn has time for one more request; at once when there is little to do. */
  async enter(): Promise<void> {
    while (!this.#hasTime()) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #hasTime(): boolean {
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.#endsAt = performance.now() + budgetMs;
      setImmediate(() => {
        this.#isOpen = false;
      });
    }
    return performance.now() < this.#endsAt;
  }
}
