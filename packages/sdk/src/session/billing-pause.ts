import type { Runtime } from "../runtime/runtime.js";

const newIncidentAfterMs = 300_000;
const logEveryMs = 60_000;

/**
 * Decides how long a 402 (payment required) is waited out.
 *
 * - An incident starts with the first 402 and is over when none came for five minutes.
 * - It is waited out for `maxPauseMs`; then the error reaches the caller.
 * - The server's text is logged once a minute.
 */
export class BillingPause {
  readonly #runtime: Runtime;
  /** The server's limit, once its flags have arrived. */
  maxPauseMs = 3_600_000;
  #firstAt: number | undefined;
  #lastLoggedAt: number | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Notes a 402; true while requests wait. */
  shouldPause(message: string): boolean {
    const { clock, logger, events } = this.#runtime;
    const now = clock.now();
    if (this.#lastLoggedAt !== undefined && now - this.#lastLoggedAt > newIncidentAfterMs) {
      this.#firstAt = undefined;
      this.#lastLoggedAt = undefined;
    }
    if (this.#firstAt !== undefined && now - this.#firstAt > this.maxPauseMs) {
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
