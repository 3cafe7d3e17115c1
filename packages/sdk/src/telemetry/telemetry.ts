import { APIError, APIResponseValidationError, APIStatusError } from "../errors/api-error.js";
import { isUserError } from "../errors/tinker-error.js";
import type { CancelTimer } from "../runtime/clock.js";
import { defer, type Deferred } from "../runtime/deferred.js";
import { platform } from "../runtime/platform.js";
import type { Runtime } from "../runtime/runtime.js";
import { sleep } from "../runtime/cancellation.js";
import { sdkVersion } from "../runtime/version.js";
import { Timestamp } from "../schema/timestamp.js";
import type { Api, RequestOf } from "../transport/api.js";
import { growingPauseMs, retry, retryTable, type RetryPolicy } from "../transport/retry.js";
import type { Severity, TelemetryEventInput } from "../types/telemetry.js";
import { redact, redactText } from "./redact.js";
import type { TelemetrySink } from "./sink.js";

const batchSize = 100;
const flushEveryMs = 10_000;
const queueLimit = 10_000;
const longestDelayOfAnErrorMs = 1_000;

const statusesOfMissingEndpoints = new Set([404, 405, 501]);

const processUuid = crypto.randomUUID();
const platforms: Readonly<Record<string, string>> = { darwin: "Darwin", win32: "Windows" };

/** What telemetry needs to run. */
export interface TelemetryOptions {
  readonly api: Api;
  readonly runtime: Runtime;
  /** The session it reports about; none for clients that have no session. */
  readonly sessionId?: string;
}

/** Starts reporting to the server. */
export function openTelemetry(options: TelemetryOptions): TelemetrySink {
  return new Telemetry(options);
}

type EventBody = TelemetryEventInput extends infer E
  ? E extends TelemetryEventInput
    ? Omit<E, "eventId" | "eventSessionIndex" | "timestamp">
    : never
  : never;

/**
 * Reports errors and diagnostics in the background.
 *
 * - Events are sent in batches, every ten seconds or when an error reaches the caller.
 * - The queue is bounded: what does not fit is dropped with a warning.
 * - A batch that does not get through is sent again, after a second at first and then ever more rarely; one that
 *   is refused (4xx) or cannot be encoded is dropped. A server without the endpoint is left alone.
 * - An error waits for its report for a second at most, and not at all while the last report is stuck.
 */
class Telemetry implements TelemetrySink {
  readonly #api: Api;
  readonly #runtime: Runtime;
  readonly #hasSession: boolean;
  readonly #sessionId: string;
  readonly #startedAt: number;
  readonly #stopping = new AbortController();
  #queue: TelemetryEventInput[] = [];
  #nextIndex = 0;
  #pushed = 0;
  #flushed = 0;
  #flushing: Promise<void> | undefined;
  #cancelTimer: CancelTimer | undefined;
  #waiters: { readonly target: number; readonly done: Deferred<void> }[] = [];
  #isStuck = false;

  constructor({ api, runtime, sessionId }: TelemetryOptions) {
    this.#api = api;
    this.#runtime = runtime;
    this.#hasSession = sessionId !== undefined;
    this.#sessionId = sessionId ?? `sessionless-${crypto.randomUUID()}`;
    this.#startedAt = runtime.clock.now();
    if (this.#hasSession) this.#push([{ event: "SESSION_START", severity: "INFO" }]);
  }

  log(eventName: string, severity: Severity, data: Readonly<Record<string, unknown>>): void {
    const eventData = redact(data) as Record<string, unknown>;
    this.#push([{ event: "GENERIC_EVENT", severity, eventName, eventData }]);
  }

  async captureFatal(error: unknown): Promise<void> {
    const duration = durationText(this.#runtime.clock.now() - this.#startedAt);
    this.#push([
      describeException(error),
      ...(this.#hasSession
        ? [{ event: "SESSION_END" as const, severity: "INFO" as const, duration }]
        : []),
    ]);
    if (this.#stopping.signal.aborted) return;
    void this.#flush();
    if (!this.#isStuck) await this.#drain();
  }

  stop(): void {
    this.#stopping.abort(new Error("telemetry was stopped"));
    this.#cancelTimer?.();
    this.#queue = [];
    this.#release(Number.POSITIVE_INFINITY);
  }

  #push(bodies: readonly EventBody[]): void {
    if (this.#stopping.signal.aborted) return;
    const { clock, logger, events } = this.#runtime;
    if (this.#queue.length + bodies.length > queueLimit) {
      logger.warn(`telemetry: the queue is full, dropped ${bodies.length} event(s)`);
      events.emit({ type: "telemetryDropped", events: bodies.length });
      return;
    }
    for (const body of bodies) {
      this.#queue.push({
        ...body,
        eventId: crypto.randomUUID(),
        eventSessionIndex: this.#nextIndex++,
        timestamp: new Timestamp(clock.wallTime()),
      });
    }
    this.#pushed += bodies.length;
    this.#cancelTimer ??= clock.schedule(flushEveryMs, () => void this.#flush());
  }

  /** Waits until everything pushed so far was handled, or a second has passed. */
  async #drain(): Promise<void> {
    if (this.#flushed >= this.#pushed) return;
    const waiter = { target: this.#pushed, done: defer() };
    this.#waiters.push(waiter);
    const giveUp = new AbortController();
    const timeout = sleep(this.#runtime.clock, longestDelayOfAnErrorMs, giveUp.signal)
      .then(() => {
        this.#isStuck = true;
      })
      .catch(() => {});
    await Promise.race([waiter.done.promise, timeout]);
    giveUp.abort();
    this.#waiters = this.#waiters.filter((other) => other !== waiter);
  }

  #flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#flushing ??= this.#sendAll().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, batchSize);
      if (!(await this.#sendBatch(batch))) return;
      this.#queue.splice(0, batch.length);
      this.#release(this.#flushed + batch.length);
    }
  }

  /** Sends until it is accepted or hopeless; false when telemetry was stopped meanwhile. */
  async #sendBatch(events: TelemetryEventInput[]): Promise<boolean> {
    const { signal } = this.#stopping;
    const send = () =>
      this.#api.call("telemetry", this.#toRequest(events), { isBackground: true, signal });
    const context = { clock: this.#runtime.clock, signal, isBackground: true };
    try {
      await retry(send, this.#resending, context);
      this.#isStuck = false;
    } catch (error) {
      if (signal.aborted) return false;
      const { logger, events: listeners } = this.#runtime;
      if (error instanceof APIStatusError && statusesOfMissingEndpoints.has(error.status)) {
        logger.debug("telemetry: the server does not take any");
        this.stop();
        return false;
      }
      logger.debug(`telemetry: dropped ${events.length} event(s): ${String(error)}`);
      listeners.emit({ type: "telemetryDropped", events: events.length });
    }
    return true;
  }

  /** A 2xx means that the server has the events, whatever its body is. */
  readonly #resending: RetryPolicy = {
    shouldRetry: (error) =>
      error instanceof APIError &&
      !(error instanceof APIResponseValidationError) &&
      !(error instanceof APIStatusError && isFinal(error.status)),
    delayFor: (_, failures) => growingPauseMs(retryTable.telemetry, failures),
    onFailure: (error, delayMs) => {
      if (delayMs === null) return;
      this.#runtime.logger.debug(`telemetry: will be sent again: ${(error as Error).message}`);
    },
  };

  #toRequest(events: TelemetryEventInput[]): RequestOf<"telemetry"> {
    return {
      events,
      platform: platforms[platform.os] ?? "Linux",
      sdkVersion,
      sessionId: this.#sessionId,
      processUuid,
    };
  }

  #release(flushed: number): void {
    this.#flushed = Math.min(flushed, this.#pushed);
    for (const { target, done } of this.#waiters) {
      if (this.#flushed >= target) done.resolve();
    }
  }
}

/** A refused batch would be refused for ever. */
function isFinal(status: number): boolean {
  return status < 500 ? status !== 408 && status !== 409 && status !== 429 : status === 501;
}

/** A duration as the service reads it: `0:00:05`, `1 day, 1:01:01.500000`. */
export function durationText(durationMs: number): string {
  const totalSeconds = Math.floor(durationMs / 1000);
  const microseconds = Math.round((durationMs - totalSeconds * 1000) * 1000);
  const days = Math.floor(totalSeconds / 86_400);
  const hours = Math.floor((totalSeconds % 86_400) / 3600);
  const minutes = Math.floor((totalSeconds % 3600) / 60);
  const seconds = totalSeconds % 60;
  const pad = (value: number): string => String(value).padStart(2, "0");
  const fraction = microseconds === 0 ? "" : `.${String(microseconds).padStart(6, "0")}`;
  const dayPart = days === 0 ? "" : `${days} day${days === 1 ? "" : "s"}, `;
  return `${dayPart}${hours}:${pad(minutes)}:${pad(seconds)}${fraction}`;
}

/** The part of an event that depends on the error. */
type ExceptionEvent =
  | {
      readonly event: "UNHANDLED_EXCEPTION";
      readonly severity: Severity;
      readonly errorMessage: string;
      readonly errorType: string;
      readonly traceback: string | null;
    }
  | {
      readonly event: "GENERIC_EVENT";
      readonly severity: Severity;
      readonly eventName: string;
      readonly eventData: Record<string, unknown>;
    };

/** What is reported about an error: mistakes of the caller are kept apart from failures. */
function describeException(error: unknown): ExceptionEvent {
  const fault = userFault(error);
  if (fault) {
    return {
      event: "GENERIC_EVENT",
      severity: "WARNING",
      eventName: "user_error",
      eventData: redact({
        error_type: fault.name,
        ...(fault.message ? { message: fault.message } : {}),
        ...(fault instanceof APIStatusError ? { status_code: fault.status } : {}),
        ...(fault instanceof APIError && fault.body !== null ? { body: fault.body } : {}),
      }) as Record<string, unknown>,
    };
  }
  const isError = error instanceof Error;
  return {
    event: "UNHANDLED_EXCEPTION",
    severity: "ERROR",
    errorMessage: redactText(isError ? error.message : String(error)),
    errorType: isError ? error.name : typeof error,
    traceback: isError && error.stack ? redactText(error.stack) : null,
  };
}

/** The link of the chain of causes that blames the user. */
function userFault(error: unknown): Error | undefined {
  if (!isUserError(error)) return undefined;
  let fault = error as Error;
  while (!("blamesUser" in fault && fault.blamesUser === true)) fault = fault.cause as Error;
  return fault;
}
