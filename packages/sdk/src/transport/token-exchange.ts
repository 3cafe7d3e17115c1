import type { CancelTimer } from "../runtime/clock.js";
import type { Runtime } from "../runtime/runtime.js";
import { expiryOf } from "./jwt.js";

const refreshBeforeExpiryMs = 300_000;
const retryRefreshMs = 60_000;
const lastMomentMs = 60_000;

/**
 * Keeps a short-lived token that was exchanged for a key.
 *
 * - A 401 is not retried anywhere, so expiry is handled ahead of time: in the background five minutes
 *   before, and on demand when less than a minute is left. All who need one share a single fetch, but
 *   not one in the background, which would not keep the process alive for them.
 * - A failed refresh is tried again after a minute; meanwhile the old token serves.
 */
export class TokenExchange {
  readonly #fetchToken: (isBackground: boolean) => Promise<string>;
  readonly #runtime: Runtime;
  #token!: string;
  /** When the token expires, read from it once: every request asks. */
  #expiry: number | undefined;
  #fetchingOnDemand: Promise<void> | undefined;
  #cancelRefresh: CancelTimer | undefined;
  #isStopped = false;

  constructor(
    runtime: Runtime,
    fetchToken: (isBackground: boolean) => Promise<string>,
    token: string,
  ) {
    this.#runtime = runtime;
    this.#fetchToken = fetchToken;
    this.#keep(token);
  }

  /** The token as it is, for identity and for copies. */
  get token(): string {
    return this.#token;
  }

  /** A token that is good for the next minute, or the best there is. */
  readonly current = (): string | Promise<string> => {
    const expiry = this.#expiry ?? 0;
    if (expiry - this.#runtime.clock.wallTime() > lastMomentMs) return this.#token;
    this.#fetchingOnDemand ??= this.#refresh(false).finally(() => {
      this.#fetchingOnDemand = undefined;
    });
    return this.#fetchingOnDemand.then(() => this.#token);
  };

  stop(): void {
    this.#isStopped = true;
    this.#cancelRefresh?.();
  }

  async #refresh(isBackground: boolean): Promise<void> {
    try {
      this.#keep(await this.#fetchToken(isBackground));
    } catch (error) {
      this.#runtime.logger.warn(
        `could not renew the access token, trying again in a minute: ${String(error)}`,
      );
      this.#scheduleRefresh(retryRefreshMs);
    }
  }

  #keep(token: string): void {
    this.#token = token;
    this.#expiry = expiryOf(token);
    this.#scheduleRefresh();
  }

  #scheduleRefresh(delayMs = this.#untilRefreshMs()): void {
    this.#cancelRefresh?.();
    if (this.#isStopped) return;
    this.#cancelRefresh = this.#runtime.clock.schedule(delayMs, () => void this.#refresh(true));
  }

  #untilRefreshMs(): number {
    if (this.#expiry === undefined) return retryRefreshMs;
    return Math.max(0, this.#expiry - refreshBeforeExpiryMs - this.#runtime.clock.wallTime());
  }
}
