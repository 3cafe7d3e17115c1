import { option, type OptionsOf } from "../errors/check-options.js";
import type { QueueState } from "../types/futures.js";
import type { Attempt } from "../errors/api-error.js";
import { APITimeoutError } from "../errors/api-error.js";
import { ArgumentError } from "../errors/argument-error.js";
import { Canceller, listen, stopListening, type Cancellation } from "../runtime/cancellation.js";
import type { CancelTimer } from "../runtime/clock.js";
import type { OperationName } from "../runtime/events.js";
import type { Runtime } from "../runtime/runtime.js";

/** The fields of `OperationOptions`. */
export const operationOptions = {
  /** Gives the operation up when it aborts. */
  signal: option<AbortSignal>(),
  /** Gives the operation up after this time. */
  timeoutMs: option<number>(),
};

/** Bounds that a caller sets on an operation. */
export interface OperationOptions extends OptionsOf<typeof operationOptions> {}

/** Attempts kept for looking at; a long outage must not fill the memory. */
const maxKeptAttempts = 100;

/** The part of an operation's time that is spent on something. */
export type Phase = keyof FutureTimings;

/** What is known about an operation under way; the inside of an `ApiFuture`. */
export class Operation {
  readonly name: OperationName;
  readonly subject: string;
  readonly runtime: Runtime;
  readonly #canceller = new Canceller();
  /** Aborts when the caller cancels, time is over or the client is closed. */
  readonly signal: Cancellation = this.#canceller;
  readonly #timings: Record<Phase, number> = {
    waitMs: 0,
    encodeMs: 0,
    submitMs: 0,
    queueMs: 0,
    downloadMs: 0,
    decodeMs: 0,
  };
  readonly #requestIds: string[] = [];
  #bounds: readonly (AbortSignal | undefined)[] = [];
  #cancelTimeout: CancelTimer | undefined;
  #attempts: Attempt[] | undefined;
  #listeners: Set<(status: FutureStatus) => void> | undefined;
  #state: FutureState = "queued";
  #reason: string | null = null;
  #queueState: QueueState | null = null;
  #pollCount = 0;
  /** What the server last said about it, short of the result. */
  lastAnswer: LastAnswer | null = null;

  constructor(name: OperationName, subject: string, runtime: Runtime) {
    this.name = name;
    this.subject = subject;
    this.runtime = runtime;
  }

  get status(): FutureStatus {
    return {
      state: this.#state,
      reason: this.#reason,
      queueState: this.#queueState,
      requestIds: [...this.#requestIds],
      pollCount: this.#pollCount,
      lastAnswer: this.lastAnswer,
    };
  }

  get timings(): FutureTimings {
    return { ...this.#timings };
  }

  get attempts(): readonly Attempt[] {
    return this.#attempts ?? [];
  }

  /** Lets the caller's bounds and the client's end give the operation up. */
  bind({ signal, timeoutMs }: OperationOptions, closed: AbortSignal): void {
    this.#bounds = [closed, signal];
    for (const bound of this.#bounds) listen(bound, this.#canceller);
    if (timeoutMs === undefined) return;
    const { clock } = this.runtime;
    const startedAt = clock.now();
    this.#cancelTimeout = clock.schedule(timeoutMs, () =>
      this.abort(this.#timeoutError(timeoutMs, startedAt)),
    );
  }

  abort(reason: unknown): void {
    this.#canceller.abort(reason);
  }

  /** Adds the time since `startedAt` to a phase. */
  spent(phase: Phase, startedAt: number): void {
    this.#timings[phase] += this.runtime.clock.now() - startedAt;
  }

  /** Adds a known time to a phase. */
  add(phase: Phase, durationMs: number): void {
    this.#timings[phase] += durationMs;
  }

  failedAttempt(attempt: Attempt): void {
    this.#attempts ??= [];
    this.#attempts.push(attempt);
    if (this.#attempts.length > maxKeptAttempts) this.#attempts.shift();
  }

  accepted(requestId: string): void {
    this.#requestIds.push(requestId);
    this.#change("running", null, this.#queueState);
  }

  polled(): void {
    this.#pollCount++;
  }

  /** The server reported the state of its queue; a reason means that it is paused. */
  queued(queueState: QueueState, reason: string | null): void {
    this.#change(reason === null ? "running" : "paused", reason, queueState);
  }

  /** It is not worked on for a reason that has nothing to do with the server's queue. */
  paused(reason: string): void {
    this.#change("paused", reason, this.#queueState);
  }

  /** It waits here because the server wants it later. */
  heldBack(reason: string): void {
    this.#change("queued", reason, this.#queueState);
  }

  resumed(): void {
    this.#change("running", null, this.#queueState);
  }

  finish(state: "done" | "failed"): void {
    for (const bound of this.#bounds) stopListening(bound, this.#canceller);
    this.#cancelTimeout?.();
    this.#change(state, null, this.#queueState);
    this.#listeners?.clear();
  }

  onStatus(listener: (status: FutureStatus) => void): () => void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
    return () => this.#listeners?.delete(listener);
  }

  #change(state: FutureState, reason: string | null, queueState: QueueState | null): void {
    const isNews =
      state !== this.#state || reason !== this.#reason || queueState !== this.#queueState;
    this.#state = state;
    this.#reason = reason;
    this.#queueState = queueState;
    if (!isNews || !this.#listeners) return;
    for (const listener of this.#listeners) {
      try {
        listener(this.status);
      } catch (error) {
        this.runtime.logger.error(`a listener of a future threw and is ignored: ${String(error)}`);
      }
    }
  }

  #timeoutError(timeoutMs: number, startedAt: number): APITimeoutError {
    const ids = this.#requestIds.length > 0 ? ` (request ${this.#requestIds.join(", ")})` : "";
    const reason =
      this.#reason === null
        ? ""
        : `, ${this.#state === "queued" ? "held back" : "paused"} because ${this.#reason}`;
    return new APITimeoutError(
      `${this.name} of ${this.subject} was not finished after ${timeoutMs} ms; it was ${this.#state}${reason}${ids}.${this.runtime.retries.lastFailureSince(startedAt)}`,
      { attempts: this.attempts },
    );
  }
}

/** Refuses bounds that cannot be meant. */
export function checkBounds({ timeoutMs }: OperationOptions): void {
  if (timeoutMs !== undefined && !(timeoutMs > 0)) {
    throw new ArgumentError("timeoutMs", `must be above 0, got ${timeoutMs}`);
  }
}

/**
 * Where an operation stands.
 *
 * - `queued`: waits here for its turn or for permission to be sent.
 * - `running`: the server has it, waiting or at work.
 * - `paused`: the server has it but does not work on it, for the reason in `reason`.
 * - `done`, `failed`: over.
 */
export type FutureState = "queued" | "running" | "paused" | "done" | "failed";

/** The last answer to an operation that is not over. */
export interface LastAnswer {
  /** The HTTP status; null when there was no answer in time, or the connection broke. */
  readonly status: number | null;
  /** The server's words, else what went wrong. */
  readonly message: string;
  /** When it came, in milliseconds since 1970. */
  readonly time: number;
}

/** One look at an operation. */
export interface FutureStatus {
  /** Where the operation stands. */
  readonly state: FutureState;
  /** Why it is paused, in words; null otherwise. */
  readonly reason: string | null;
  /** The server's last report about its queue; null before the first. */
  readonly queueState: QueueState | null;
  /** The server's ids; one per chunk, in the order of acceptance. */
  readonly requestIds: readonly string[];
  /** How often the server was asked for the result. */
  readonly pollCount: number;
  /** The server's last answer that was not the result; null before the first. */
  readonly lastAnswer: LastAnswer | null;
}

/** Where the time of an operation went, in milliseconds; parts of parallel chunks add up. */
export interface FutureTimings {
  /** Waiting in this process: for its turn and for limits on what may be under way. */
  readonly waitMs: number;
  /** Turning the data into a request body. */
  readonly encodeMs: number;
  /** From sending to the server's acceptance, attempts included; to the result where that came along. */
  readonly submitMs: number;
  /** From acceptance until the result was announced: waiting and computing at the server. */
  readonly queueMs: number;
  /** Receiving the result. */
  readonly downloadMs: number;
  /** Turning the received bytes into values. */
  readonly decodeMs: number;
}
