import { CancelledError } from "../errors/tinker-error.js";
import type { Runtime } from "../runtime/runtime.js";
import { Semaphore } from "../runtime/semaphore.js";

/** How long a client that is being closed waits for the server. */
const longestMs = 5_000;
const maxAtOnce = 64;

/** Small requests without a waiting caller, sent before a connection closes. */
export class Farewells {
  readonly #runtime: Runtime;
  readonly #giveUp = new AbortController();
  readonly #slots = new Semaphore(maxAtOnce);
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Sends one; a failure is logged and does no harm. */
  send(request: (signal: AbortSignal) => Promise<unknown>): void {
    const { signal } = this.#giveUp;
    const sent: Promise<unknown> = this.#slots
      .acquire(1, signal)
      .then(() => request(signal).finally(() => this.#slots.release()))
      .catch((error: unknown) => this.#runtime.logger.debug(`not delivered: ${String(error)}`))
      .finally(() => this.#underWay.delete(sent));
    this.#underWay.add(sent);
  }

  /** Sends a last request and waits for all, within bounds. */
  async end(last: (signal: AbortSignal) => Promise<unknown> = async () => {}): Promise<void> {
    const cancelTimer = this.#runtime.clock.schedule(longestMs, () =>
      this.#giveUp.abort(new CancelledError("The server did not answer in time.")),
    );
    // What was just aborted may have something to send.
    await Promise.resolve();
    this.send(last);
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    cancelTimer();
  }
}
