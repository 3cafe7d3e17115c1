import { APIStatusError } from "../errors/api-error.js";
import type { CancelTimer } from "../runtime/clock.js";
import type { Runtime } from "../runtime/runtime.js";

const intervalMs = 10_000;
const worryAfterMs = 120_000;

/** Sends a heartbeat; one that a caller waits for may keep the process alive. */
export type SendHeartbeat = (isBackground: boolean) => Promise<unknown>;

/**
 * Sends a heartbeat for a session every ten seconds, and ends the session when the server has closed it.
 *
 * - A missed beat does no harm; after two minutes without one the server may drop the session, so
 *   a warning is logged.
 * - 410, and 404 after a beat that succeeded, mean that the session is over: it slept too long, or
 *   the server lost it. Beating on would not bring it back.
 */
export class Heartbeat {
  readonly #runtime: Runtime;
  readonly #sessionId: string;
  readonly #send: SendHeartbeat;
  #lastSuccessAt: number;
  #hasSucceeded = false;
  #isSessionOver = false;
  #cancel: CancelTimer;
  #isStopped = false;

  constructor(runtime: Runtime, sessionId: string, send: SendHeartbeat) {
    this.#runtime = runtime;
    this.#sessionId = sessionId;
    this.#send = send;
    this.#lastSuccessAt = runtime.clock.now();
    this.#cancel = this.#scheduleNext();
  }

  /** True once the server has ended the session. */
  get isSessionOver(): boolean {
    return this.#isSessionOver;
  }

  /** Asks the server now; true if the session is over. */
  async check(): Promise<boolean> {
    if (!this.#isStopped) await this.#beat(false);
    return this.#isSessionOver;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #scheduleNext(): CancelTimer {
    return this.#runtime.clock.schedule(intervalMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    await this.#beat(true);
    if (!this.#isStopped) this.#cancel = this.#scheduleNext();
  }

  async #beat(isBackground: boolean): Promise<void> {
    try {
      await this.#send(isBackground);
      this.#hasSucceeded = true;
      this.#lastSuccessAt = this.#runtime.clock.now();
    } catch (error) {
      if (this.#isStopped) return;
      if (this.#saysOver(error)) this.#end(error);
      else this.#onMissed(error);
    }
  }

  /** Old servers have no such endpoint and answer 404 to every beat. */
  #saysOver(error: unknown): error is APIStatusError {
    if (!(error instanceof APIStatusError)) return false;
    return error.status === 410 || (error.status === 404 && this.#hasSucceeded);
  }

  #end(error: APIStatusError): void {
    const { logger, events } = this.#runtime;
    this.#isSessionOver = true;
    this.stop();
    events.emit({ type: "sessionOver", sessionId: this.#sessionId, error });
    logger.warn(
      `session ${this.#sessionId} is over, and its training clients with it; new clients get a new session: ${error.message}`,
    );
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
