import type { Clock } from "./clock.js";
import type { ClientEvent, EventHub } from "./events.js";
import type { Logger } from "./logger.js";

/** Something that is tried again. */
export type Retry = Omit<Extract<ClientEvent, { type: "retry" }>, "type">;

const worthTellingMs = 2_000;
const logEveryMs = 60_000;
const paymentRequired = 402;

/**
 * Tells listeners of every retry, and people of those that matter: waits grow with every failure, so a
 * wait of two seconds means that something has failed several times in a row. People hear of it once a
 * minute, whoever it is that waits; a client that goes on for hours without a word looks like a hang.
 */
export class RetryReports {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #events: EventHub;
  #lastLoggedAt = Number.NEGATIVE_INFINITY;
  #latest: { readonly retry: Retry; readonly at: number } | undefined;

  constructor(clock: Clock, logger: Logger, events: EventHub) {
    this.#clock = clock;
    this.#logger = logger;
    this.#events = events;
  }

  /**
   * Work in the background is nobody's wait, so people do not hear of it. What is repeated at short
   * intervals is worth telling however short they are.
   */
  report(retry: Retry, { isBackground = false, isRepeated = false } = {}): void {
    if (this.#events.isActive) this.#events.emit({ type: "retry", ...retry });
    const { endpoint, status, message, delayMs } = retry;
    const now = this.#clock.now();
    if (!isBackground) this.#latest = { retry, at: now };
    // What is unpaid is told by the billing pause.
    if (isBackground || status === paymentRequired) return;
    if (delayMs < worthTellingMs && !isRepeated) return;
    if (now - this.#lastLoggedAt < logEveryMs) return;
    this.#lastLoggedAt = now;
    this.#logger.warn(
      `${endpoint} keeps failing and is tried again in ${(delayMs / 1000).toFixed(0)} s: ${message}`,
    );
  }

  /** The last failure since a moment, as a sentence for an error about time that ran out. */
  lastFailureSince(startedAt: number): string {
    if (!this.#latest || this.#latest.at < startedAt) return "";
    const { endpoint, message } = this.#latest.retry;
    return ` The last failure, of ${endpoint}: ${message}`;
  }
}
