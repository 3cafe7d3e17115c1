import { retryAfter as tryAgain, type RetryPolicy } from "@tinker-ts/hub/retry";
import {
  APIConnectionError,
  APIError,
  APIStatusError,
  isRetryableStatus,
  toAttempt,
  type Attempt,
} from "../errors/api-error.js";
import { isUserError } from "../errors/tinker-error.js";
import { type Cancellation, sleep } from "../runtime/cancellation.js";
import type { Clock } from "../runtime/clock.js";
import type { Runtime } from "../runtime/runtime.js";
import type { Severity } from "../types/telemetry.js";
import type { Headers, HttpResponse } from "./message.js";

export type { RetryPolicy };

/*
 * Every wait between two tries of this package is in this table. One loop, that of `retry`, makes all tries; a policy
 * decides after each failure what comes next, so that no loop runs inside another.
 *
 * - `http`: no answer, or one that asks for another try: `maxRetries` tries in a row.
 * - `call`: a pause after such a row, until five minutes are over.
 * - `unpaid`: 402, for as long as the server's flag allows; this time does not count.
 * - `archive`: 503 while the server packs a checkpoint, up to ten minutes.
 * - `poll…`: until the operation ends, is aborted or is refused.
 * - `telemetry`: until it is accepted or the client is closed.
 * - `download`: five failures in a row without a byte in between.
 * - Whole samples follow `RetryConfig`, and recovered clients `RecoveryPolicy`.
 */
export const retryTable = {
  http: { firstMs: 500, longestMs: 10_000, jitter: 0.25 },
  call: { firstMs: 1_000, longestMs: 30_000, windowMs: 300_000 },
  unpaid: { pauseMs: 5_000 },
  archive: { pauseMs: 30_000, tries: 20 },
  pollWithoutAnswer: { firstMs: 1_000, longestMs: 30_000 },
  pollServerFailure: { firstMs: 100, longestMs: 10_000, free: 1 },
  pollPending: { firstMs: 10, longestMs: 1_000, free: 3 },
  pollBadRequest: { tries: 3 },
  telemetry: { firstMs: 1_000, longestMs: 60_000 },
  download: { firstMs: 1_000, longestMs: 60_000, tries: 5 },
} as const;

/** The pause after so many failures, which doubles with each of them; the first `free` have none. */
export function growingPauseMs(
  { firstMs, longestMs, free = 0 }: { firstMs: number; longestMs: number; free?: number },
  failures: number,
): number {
  return failures < free ? 0 : Math.min(firstMs * 2 ** (failures - free), longestMs);
}

/** What the loop of tries uses. */
export interface RetryContext {
  readonly clock: Clock;
  readonly signal?: Cancellation | undefined;
  /** No caller waits, so pauses must not keep the process alive. */
  readonly isBackground?: boolean;
}

/** Tries until it succeeds or the policy ends it; pauses use the client's clock. */
export function retry<T>(
  attempt: (index: number) => Promise<T>,
  policy: RetryPolicy,
  context: RetryContext,
): Promise<T> {
  return attempt(0).then(undefined, (error: unknown) =>
    retryAfter(error, attempt, policy, context),
  );
}

/** Continues after a first try that the caller made. */
export function retryAfter<T>(
  firstError: unknown,
  attempt: (index: number) => Promise<T>,
  policy: RetryPolicy,
  { clock, signal, isBackground }: RetryContext,
): Promise<T> {
  return tryAgain(firstError, attempt, policy, {
    sleep: (durationMs) => sleep(clock, durationMs, signal, isBackground),
    signal,
  });
}

/** True for an answer that is worth another try; `x-should-retry` overrides the status. */
export function shouldRetry({
  status,
  headers,
}: Pick<HttpResponse, "status" | "headers">): boolean {
  const asked = headers["x-should-retry"];
  if (asked === "true") return true;
  if (asked === "false") return false;
  return isRetryableStatus(status) || status >= 600;
}

/** The pause before try `failures + 1` of one HTTP call: as the server asks, else growing. */
export function retryDelayMs(
  failures: number,
  headers: Headers | undefined,
  wallTimeMs: number,
  random: () => number,
): number {
  const usualMs = growingPauseMs(retryTable.http, failures);
  return askedDelayMs(headers, wallTimeMs) ?? usualMs * (1 - retryTable.http.jitter * random());
}

const maxAskedDelayMs = 60_000;

/** The pause that a server asks for; undefined when it asks for none, or for more than a minute. */
export function askedDelayMs(headers: Headers | undefined, wallTimeMs: number): number | undefined {
  const asked = headers && readDelayMs(headers, wallTimeMs);
  return asked !== undefined && asked > 0 && asked <= maxAskedDelayMs ? asked : undefined;
}

function readDelayMs(headers: Headers, wallTimeMs: number): number | undefined {
  const milliseconds = asNumber(headers["retry-after-ms"]);
  if (milliseconds !== undefined) return milliseconds;
  const text = headers["retry-after"];
  const seconds = asNumber(text);
  if (seconds !== undefined) return seconds * 1000;
  const moment = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(moment) ? undefined : moment - wallTimeMs;
}

function asNumber(text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const value = Number(text);
  return Number.isNaN(value) ? undefined : value;
}

/** The client that a call belongs to. */
export interface CallHost {
  readonly runtime: Runtime;
  readonly telemetry: {
    log(name: string, severity: Severity, data: Readonly<Record<string, unknown>>): void;
  };
  /** Notes a 402; true while requests wait for the account to be paid. */
  readonly billing: { shouldPause(message: string): boolean };
}

/** How a call is repeated beyond one row of tries. */
export interface CallRetries {
  readonly host: CallHost;
  /** Keeps the failed attempts. */
  readonly operation?: { failedAttempt(attempt: Attempt): void } | undefined;
  /**
   * A policy of the endpoint's own for some refusals, which comes first and reports by itself: the pause before the
   * next try, null for the end, undefined for all other errors. `failures` counts the refusals before this one.
   */
  readonly ownPauseMs?: (error: APIStatusError, failures: number) => number | null | undefined;
  /** Waits before every try. */
  readonly gate?: () => Promise<void> | undefined;
}

/** A call that failed once. */
export interface FailedCall {
  /** The endpoint, for reports. */
  readonly endpoint: string;
  readonly runtime: Runtime;
  readonly startedAt: number;
  /** Tries in a row after the first one. */
  readonly maxRetries: number;
  /** False where a 409 reports a state and not a lock. */
  readonly retriesConflicts: boolean;
  readonly isBackground: boolean;
  /** Absent for calls that are made in one row of tries. */
  readonly retries: CallRetries | undefined;
}

type Level = "own" | "http" | "call" | "unpaid";

/**
 * The retries of one call: rows of quick tries with pauses in between. The error that remains has every attempt that
 * was made. A server that answers `x-should-retry: false` is asked no more.
 */
export class CallPolicy implements RetryPolicy {
  readonly #call: FailedCall;
  readonly #attempts: Attempt[] = [];
  #startedAt: number;
  #level: Level | undefined;
  #delayMs = 0;
  #refusals = 0;
  #triesInRow = 0;
  #pauses = 0;
  #unpaidMs = 0;

  constructor(call: FailedCall) {
    this.#call = call;
    this.#startedAt = call.startedAt;
  }

  shouldRetry(error: unknown): boolean {
    this.#level = error instanceof APIError ? this.#decide(error) : undefined;
    return this.#level !== undefined;
  }

  delayFor(): number {
    return this.#delayMs;
  }

  onFailure(error: unknown, delayMs: number | null): void {
    if (!(error instanceof APIError)) return;
    const { endpoint, runtime, isBackground, retries } = this.#call;
    const attempt = toAttempt(error, delayMs);
    this.#attempts.push(attempt);
    if (delayMs === null) error.attempts = this.#attempts;
    if (this.#level === "own") return;
    if (retries && (delayMs === null || this.#level === "call")) this.#log(error, retries.host);
    if (delayMs === null) return;
    retries?.operation?.failedAttempt(attempt);
    const { status, message } = attempt;
    const by = this.#level === "http" ? "http" : "call";
    runtime.retries.report({ endpoint, by, status, message, delayMs }, { isBackground });
  }

  #decide(error: APIError): Level | undefined {
    const { runtime, maxRetries, retriesConflicts, retries } = this.#call;
    const { clock, random } = runtime;
    const refusal = error instanceof APIStatusError ? error : undefined;
    const ownMs = refusal && retries?.ownPauseMs?.(refusal, this.#refusals);
    if (ownMs === null) return undefined;
    if (ownMs !== undefined) {
      // A refusal is an answer: what follows it has five minutes of its own.
      this.#startedAt = clock.now();
      this.#pauses = 0;
      this.#refusals++;
      return this.#wait("own", ownMs);
    }
    if (refusal?.status === 409 && !retriesConflicts) return undefined;
    const isQuick = refusal ? shouldRetry(refusal) : error instanceof APIConnectionError;
    if (isQuick && this.#triesInRow < maxRetries) {
      const { headers } = refusal ?? {};
      return this.#wait(
        "http",
        retryDelayMs(this.#triesInRow++, headers, clock.wallTime(), random),
      );
    }
    if (!retries) return undefined;
    if (refusal?.status === 402 && retries.host.billing.shouldPause(error.message)) {
      this.#unpaidMs += retryTable.unpaid.pauseMs;
      return this.#wait("unpaid", retryTable.unpaid.pauseMs);
    }
    const leftMs = retryTable.call.windowMs + this.#unpaidMs - this.#elapsedMs;
    if (leftMs <= 0 || !error.isRetryable) return undefined;
    if (refusal?.headers["x-should-retry"] === "false") return undefined;
    this.#triesInRow = 0;
    return this.#wait("call", Math.min(growingPauseMs(retryTable.call, this.#pauses++), leftMs));
  }

  #wait(level: Level, delayMs: number): Level {
    this.#delayMs = delayMs;
    return level;
  }

  get #elapsedMs(): number {
    return this.#call.runtime.clock.now() - this.#startedAt;
  }

  /** Reports to the service in the words of the official client. */
  #log(error: APIError, { runtime, telemetry }: CallHost): void {
    const isRetried = this.#level === "call";
    const isUser = isUserError(error);
    const now = runtime.clock.wallTime();
    telemetry.log(
      "InternalClientHolder.execute_with_retries.exception",
      isRetried || isUser ? "WARNING" : "ERROR",
      {
        func: this.#call.endpoint,
        exception: error.message,
        exception_type: error.name,
        exception_stack: error.stack ?? null,
        status_code: error instanceof APIStatusError ? error.status : null,
        is_retryable: isRetried,
        is_user_error: isUser,
        attempt_count: isRetried ? this.#pauses - 1 : this.#pauses,
        start_time: (now - this.#elapsedMs) / 1000,
        current_time: now / 1000,
        elapsed_time: this.#elapsedMs / 1000,
      },
    );
  }
}
