import type { Runtime } from "../runtime/runtime.js";

const firstMs = 45_000;
const longestMs = 720_000;

/**
 * How long a poll may stay without an answer. Most servers answer within 45 seconds that a request is
 * still pending; some hold a poll for minutes. A poll that got no answer at all is taken for such a
 * one, and all polls of the connection wait twice as long from then on; only when even twelve minutes
 * do not help is it a lost connection.
 */
export class PollPatience {
  readonly #runtime: Runtime;
  #currentMs = firstMs;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  get currentMs(): number {
    return this.#currentMs;
  }

  /** A poll that waited this long got no answer; says whether the next one should wait longer. */
  lengthen(waitedMs: number): boolean {
    // Others may have lengthened it while this one waited.
    if (waitedMs < this.#currentMs) return true;
    if (this.#currentMs >= longestMs) return false;
    this.#currentMs = Math.min(this.#currentMs * 2, longestMs);
    this.#runtime.logger.info(
      `the server holds polls for longer than ${waitedMs / 1000} s; waiting up to ${this.#currentMs / 1000} s from now on`,
    );
    return true;
  }
}
