import { Worker } from "node:worker_threads";
import {
  SideThreadDiedError,
  SideThreadMessageError,
  SideThreadStartError,
} from "../../errors/side-thread-error.js";
import { onAbort, type Cancellation } from "../../runtime/cancellation.js";
import type { Clock } from "../../runtime/clock.js";
import { defer, type Deferred } from "../../runtime/deferred.js";
import type { SamplingClientState } from "../sampling/transfer-state.js";
import { restoreError } from "./error-record.js";
import type { SideAnswer, SideCall, SideRequest } from "./messages.js";

const readyWithinMs = 30_000;

let shared: SideThread | undefined;

/** The side thread of this process; a new one when there is none or the last one died. */
export function sharedSideThread(clock: Clock): SideThread {
  if (!shared || shared.hasDied) shared = new SideThread(clock);
  return shared;
}

/**
 * A thread that samples, so that encoding, polling and decoding do not hold the main thread up.
 *
 * - One for all clients; it holds the process only while calls are under way.
 * - When it dies all calls under way fail, and so do later ones of the same clients; a new client
 *   starts a new thread.
 * - The late answer to an aborted call is ignored.
 */
export class SideThread {
  readonly #worker: Worker;
  readonly #ready: Deferred<void> = defer();
  readonly #calls = new Map<number, Deferred<unknown>>();
  #nextId = 0;
  #death: SideThreadDiedError | undefined;

  constructor(clock: Clock) {
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), {
      // Flags of the process hold for its threads, V8's too, but naming those here is refused. So is a flag of
      // `node --input-type=module --eval` in a thread: it is about that program alone.
      execArgv: process.execArgv.some((flag) => flag.startsWith("--input-type")) ? [] : undefined,
    });
    this.#worker.unref();
    this.#worker.on("message", (answer: SideAnswer) => this.#onAnswer(answer));
    this.#worker.on("error", (cause) => this.#die(cause));
    this.#worker.on("exit", () => this.#die(undefined));
    this.#ready.promise.catch(() => {});
    const cancelTimer = clock.schedule(readyWithinMs, () => {
      this.#ready.reject(new SideThreadStartError("The side thread was not ready within 30 s."));
      void this.#worker.terminate();
    });
    void this.#ready.promise.finally(cancelTimer).catch(() => {});
  }

  get hasDied(): boolean {
    return this.#death !== undefined;
  }

  /** Registers a client in the thread; returns its number. */
  register(state: SamplingClientState): number {
    const targetId = this.#nextId++;
    this.#post({ type: "register", targetId, state });
    return targetId;
  }

  /** Lets a client go, with its connections; what goes with a dead thread is gone already. */
  async drop(targetId: number): Promise<void> {
    await this.#ask((callId) => ({ type: "drop", callId, targetId })).catch(() => {});
  }

  call(targetId: number, call: SideCall, signal: Cancellation): Promise<unknown> {
    return this.#ask((callId) => ({ type: "call", callId, targetId, call }), signal);
  }

  async #ask(toRequest: (callId: number) => SideRequest, signal?: Cancellation): Promise<unknown> {
    if (this.#death) throw this.#death;
    const callId = this.#nextId++;
    const result = defer<unknown>();
    this.#calls.set(callId, result);
    this.#worker.ref();
    const stopListening = onAbort(signal, (reason) => {
      result.reject(reason);
      if (!this.#death) this.#post({ type: "cancel", callId });
    });
    try {
      await Promise.race([this.#ready.promise, result.promise]);
      this.#post(toRequest(callId));
      return await result.promise;
    } finally {
      stopListening();
      this.#calls.delete(callId);
      if (this.#calls.size === 0) this.#worker.unref();
    }
  }

  #post(request: SideRequest): void {
    try {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      this.#worker.postMessage(request);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new SideThreadMessageError(`A call cannot be handed to the side thread: ${message}`, {
        cause,
      });
    }
  }

  #onAnswer(answer: SideAnswer): void {
    if (answer.type === "ready") {
      this.#ready.resolve();
      return;
    }
    const call = this.#calls.get(answer.callId);
    if (answer.type === "result") call?.resolve(answer.value);
    else call?.reject(restoreError(answer.error));
  }

  #die(cause: unknown): void {
    if (this.#death) return;
    this.#death = new SideThreadDiedError(
      "The side thread has ended; make a new sampling client to start another.",
      { cause },
    );
    this.#ready.reject(this.#death);
    for (const call of this.#calls.values()) call.reject(this.#death);
  }
}
