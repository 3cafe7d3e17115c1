import type { Runtime } from "../runtime/runtime.js";

const newIncidentAfterMs = 300_000;
const logEveryMs = 60_000;

/** How long a caller waits before it asks again after a 402. */
export const billingPauseMs = 5_000;

/**
 * Whether a 402 (payment required) is waited out.
 *
 * - An incident starts with the first 402 and is over when none came for five minutes.
 * - It is waited out for as long as the server's flag says; then the error reaches the caller.
 * - The server's text is logged once a minute.
 */
export class BillingPause {
  readonly #runtime: Runtime;
  readonly #maxPauseMs: () => number;
  #firstAt: number | undefined;
  #lastLoggedAt: number | undefined;

  constructor(runtime: Runtime, maxPauseMs: () => number) {
    this.#runtime = runtime;
    this.#maxPauseMs = maxPauseMs;
  }

  /** Notes a 402 and says whether to pause. */
  shouldPause(message: string): boolean {
    const { clock, logger, events } = this.#runtime;
    const now = clock.now();
    if (this.#lastLoggedAt !== undefined && now - this.#lastLoggedAt > newIncidentAfterMs) {
      this.#firstAt = undefined;
      this.#lastLoggedAt = undefined;
    }
    if (this.#firstAt !== undefined && now - this.#firstAt > this.#maxPauseMs()) {
      logger.error(`billing: gave up waiting for the account to be settled: ${message}`);
      return false;
    }
    if (this.#lastLoggedAt === undefined || now - this.#lastLoggedAt > logEveryMs) {
      this.#lastLoggedAt = now;
      logger.warn(`billing: requests are paused until the account is settled: ${message}`);
      events.emit({ type: "billingPause", message });
    }
    this.#firstAt ??= now;
    return true;
  }
}
