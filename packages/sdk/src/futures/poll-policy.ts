import { APIConnectionError, APIStatusError, type APIError } from "../errors/api-error.js";
import { askedDelayMs, growingPauseMs, retryTable } from "../transport/retry.js";

/** What to do after a poll without a usable answer. */
export type PollDecision =
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "billing" }
  | { readonly kind: "expired" }
  | { readonly kind: "fatal" };

/** A server that holds a poll this long sets the pace itself. */
const longPollMs = 500;

/**
 * Decides how polling goes on; the waits are in `retryTable`.
 *
 * - No answer, and 429: growing waits of 1, 2, 4 ... 30 s, or as the server asks; reset by any other answer.
 * - 408 and `try_again` are how the server ends a long poll: asked again at once. A server that
 *   answers so without holding the poll is asked with short growing pauses instead.
 * - 5xx: asked again at once, but a row of them with growing pauses, so that a server in trouble is
 *   not hammered.
 * - 400 with a body: three in all are forgiven.
 * - 402 is waited out while the billing pause lasts; 410 means that the result is gone for good.
 * - Everything else ends the operation.
 */
export class PollPolicy {
  #connectionFailures = 0;
  #serverFailures = 0;
  #badRequests = 0;
  #quickPolls = 0;

  get connectionFailures(): number {
    return this.#connectionFailures;
  }

  get badRequests(): number {
    return this.#badRequests;
  }

  /** After a poll that failed; `heldMs` is how long it took. */
  decide(error: APIError, heldMs: number, wallTimeMs: number): PollDecision {
    const status = error instanceof APIStatusError ? error.status : null;
    if (error instanceof APIConnectionError || status === 429) {
      const delayMs = growingPauseMs(retryTable.pollWithoutAnswer, this.#connectionFailures++);
      const headers = error instanceof APIStatusError ? error.headers : undefined;
      return retry(askedDelayMs(headers, wallTimeMs) ?? delayMs);
    }
    if (status === 402) return { kind: "billing" };
    this.#connectionFailures = 0;
    if (status !== null && status >= 500 && status <= 599) {
      return retry(growingPauseMs(retryTable.pollServerFailure, this.#serverFailures++));
    }
    this.#serverFailures = 0;
    if (status === 408) {
      if (typeof error.body === "object" && error.body !== null) this.#badRequests = 0;
      return retry(this.pendingDelayMs(heldMs));
    }
    if (status === 400) {
      const { tries } = retryTable.pollBadRequest;
      return this.#badRequests++ < tries ? retry(0) : { kind: "fatal" };
    }
    return { kind: status === 410 ? "expired" : "fatal" };
  }

  /** A usable answer arrived. */
  answered(): void {
    this.#connectionFailures = 0;
    this.#serverFailures = 0;
  }

  /** The pause after an answer that the request is still pending. */
  pendingDelayMs(heldMs: number): number {
    if (heldMs >= longPollMs) {
      this.#quickPolls = 0;
      return 0;
    }
    return growingPauseMs(retryTable.pollPending, this.#quickPolls++);
  }
}

function retry(delayMs: number): PollDecision {
  return { kind: "retry", delayMs };
}
