import type { CancelTimer } from "../runtime/clock.js";
import type { Runtime } from "../runtime/runtime.js";

const intervalMs = 10_000;
const worryAfterMs = 120_000;

/**
 * Tells the server that a session is alive, every ten seconds. A missed beat does no harm; after two
 * minutes without one the server may drop the session, so people are told.
 */
export class Heartbeat {
  readonly #runtime: Runtime;
  readonly #sessionId: string;
  readonly #beat: () => Promise<unknown>;
  #lastSuccessAt: number;
  #cancel: CancelTimer;
  #isStopped = false;

  constructor(runtime: Runtime, sessionId: string, beat: () => Promise<unknown>) {
    this.#runtime = runtime;
    this.#sessionId = sessionId;
    this.#beat = beat;
    this.#lastSuccessAt = runtime.clock.now();
    this.#cancel = this.#scheduleNext();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #scheduleNext(): CancelTimer {
    return this.#runtime.clock.schedule(intervalMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    try {
      await this.#beat();
      this.#lastSuccessAt = this.#runtime.clock.now();
    } catch (error) {
      if (!this.#isStopped) this.#onMissed(error);
    }
    if (!this.#isStopped) this.#cancel = this.#scheduleNext();
  }

  #onMissed(error: unknown): void {
    const { clock, logger, events } = this.#runtime;
    events.emit({ type: "heartbeatFailed", sessionId: this.#sessionId, error });
    const silentMs = clock.now() - this.#lastSuccessAt;
    if (silentMs <= worryAfterMs) return;
    logger.warn(
      `no heartbeat of session ${this.#sessionId} got through for ${Math.round(silentMs / 1000)} s; the server may end it. Last error: ${String(error)}`,
    );
  }
}
