import {
  APIConnectionError,
  APIError,
  APIStatusError,
  toAttempt,
  type Attempt,
} from "../../errors/api-error.js";
import { RequestExpiredError } from "../../errors/request-failed-error.js";
import { isUserError } from "../../errors/tinker-error.js";
import type { Operation } from "../../futures/operation.js";
import type { CancelTimer } from "../../runtime/clock.js";
import type { Runtime } from "../../runtime/runtime.js";
import { Semaphore } from "../../runtime/semaphore.js";
import type { Connection } from "../../session/connection.js";
import type { TelemetrySink } from "../../telemetry/sink.js";
import { growingPauseMs, retry, type RetryPolicy } from "../../transport/retry.js";
import { ArgumentError } from "../../errors/argument-error.js";
import { checkOptions, option, type OptionsOf } from "../../errors/check-options.js";

const countEveryMs = 2_000;

/** What one call through the handler needs. */
export interface RetriedCall<T> {
  /** One attempt; a fresh request each time. */
  readonly attempt: () => Promise<T>;
  readonly operation: Operation;
}

/**
 * Makes samples again until they succeed.
 *
 * - A number of calls runs at once, the others wait in line.
 * - Lost connections, expired results (410), 408, 409, 429 and 5xx are tried again, without a limit on
 *   attempts; a request that the server worked on and that failed is not.
 * - Stuck detection is shared: as long as any call succeeds, all are considered alive. When none has
 *   for the progress timeout, every running call fails.
 */
export class RetryHandler {
  readonly #runtime: Runtime;
  readonly #telemetry: TelemetrySink;
  readonly #config: CompleteRetryConfig;
  readonly #slots: Semaphore;
  readonly #running = new Set<Operation>();
  #waitingCount = 0;
  #doneCount = 0;
  #lastCountedAt = Number.NEGATIVE_INFINITY;
  #lastProgressAt = 0;
  #cancelWatch: CancelTimer | undefined;

  constructor(
    runtime: Runtime,
    telemetry: TelemetrySink,
    config: CompleteRetryConfig,
    maxConcurrent: number,
  ) {
    this.#runtime = runtime;
    this.#telemetry = telemetry;
    this.#config = config;
    this.#slots = new Semaphore(maxConcurrent);
  }

  /** True for a handler that was made for the same settings. */
  isFor(config: CompleteRetryConfig): boolean {
    const names = Object.keys(config) as (keyof CompleteRetryConfig)[];
    return names.every((name) => this.#config[name] === config[name]);
  }

  async run<T>(call: RetriedCall<T>): Promise<T> {
    const { operation } = call;
    this.#waitingCount++;
    try {
      await this.#slots.acquire(1, operation.signal);
    } finally {
      this.#waitingCount--;
    }
    this.#enter(operation);
    try {
      const { clock } = this.#runtime;
      const { signal } = operation;
      const policy = new SamplePolicy(this.#runtime, this.#telemetry, this.#config, operation);
      const result = await retry(call.attempt, policy, { clock, signal });
      this.#lastProgressAt = this.#runtime.clock.now();
      this.#doneCount++;
      this.#logCounts();
      return result;
    } finally {
      this.#leave(operation);
      this.#slots.release();
    }
  }

  #logCounts(): void {
    const { clock, logger } = this.#runtime;
    const now = clock.now();
    if (now - this.#lastCountedAt < countEveryMs) return;
    this.#lastCountedAt = now;
    logger.debug(
      `samples: ${this.#waitingCount} waiting, ${this.#running.size} running, ${this.#doneCount} done`,
    );
  }

  #enter(operation: Operation): void {
    if (this.#running.size === 0) this.#lastProgressAt = this.#runtime.clock.now();
    this.#running.add(operation);
    if (this.#config.enableStuckDetection) this.#watch();
  }

  #leave(operation: Operation): void {
    this.#running.delete(operation);
    if (this.#running.size > 0) return;
    this.#cancelWatch?.();
    this.#cancelWatch = undefined;
  }

  // One timer for all calls; it looks at the last progress when it fires and waits on if there was any.
  #watch(): void {
    if (this.#cancelWatch) return;
    const { clock } = this.#runtime;
    const leftMs = this.#lastProgressAt + this.#config.progressTimeoutMs - clock.now();
    this.#cancelWatch = clock.schedule(Math.max(0, leftMs), () => {
      this.#cancelWatch = undefined;
      const quietMs = clock.now() - this.#lastProgressAt;
      if (quietMs >= this.#config.progressTimeoutMs) this.#failAll(quietMs);
      else if (this.#running.size > 0) this.#watch();
    });
  }

  #failAll(quietMs: number): void {
    const error = new APIConnectionError(
      `No progress: none of the ${this.#running.size} running samples finished within ${Math.round(quietMs / 1000)} s.`,
    );
    this.#runtime.logger.error(error.message);
    for (const operation of this.#running) operation.abort(error);
  }
}

/** The retries of one call, and where they are reported. */
class SamplePolicy implements RetryPolicy {
  readonly #runtime: Runtime;
  readonly #telemetry: TelemetrySink;
  readonly #config: CompleteRetryConfig;
  readonly #operation: Operation;
  readonly #startedAt: number;

  constructor(
    runtime: Runtime,
    telemetry: TelemetrySink,
    config: CompleteRetryConfig,
    operation: Operation,
  ) {
    this.#runtime = runtime;
    this.#telemetry = telemetry;
    this.#config = config;
    this.#operation = operation;
    this.#startedAt = runtime.clock.now();
  }

  shouldRetry(error: unknown): boolean {
    const { enableRetries, isRetryable = mayBeRetried } = this.#config;
    return enableRetries && isRetryable(error);
  }

  delayFor(_: unknown, failures: number): number {
    return delayOf(failures, this.#config, this.#runtime.random);
  }

  onFailure(error: unknown, delayMs: number | null, failures: number): void {
    this.#report(error, delayMs !== null, failures);
    if (delayMs === null) return;
    const failed = toFailedAttempt(error, delayMs);
    this.#operation.failedAttempt(failed);
    const { status, message } = failed;
    this.#runtime.retries.report({ endpoint: "sample", by: "sample", status, message, delayMs });
  }

  #report(error: unknown, shouldRetry: boolean, attemptCount: number): void {
    const { clock } = this.#runtime;
    const isUser = isUserError(error);
    const elapsedMs = clock.now() - this.#startedAt;
    this.#telemetry.log(
      "RetryHandler.execute.exception",
      shouldRetry || isUser ? "WARNING" : "ERROR",
      {
        func: "sample",
        exception: String(error),
        exception_type: error instanceof Error ? error.name : typeof error,
        exception_stack: error instanceof Error ? (error.stack ?? null) : null,
        status_code: error instanceof APIStatusError ? error.status : null,
        should_retry: shouldRetry,
        is_user_error: isUser,
        attempt_count: attemptCount,
        start_time: (clock.wallTime() - elapsedMs) / 1000,
        current_time: clock.wallTime() / 1000,
        elapsed_time: elapsedMs / 1000,
      },
    );
  }
}

function mayBeRetried(error: unknown): boolean {
  return (error instanceof APIError || error instanceof RequestExpiredError) && error.isRetryable;
}

function toFailedAttempt(error: unknown, delayMs: number): Attempt {
  if (error instanceof APIError) return toAttempt(error, delayMs);
  const message = error instanceof Error ? error.message : String(error);
  const status = error instanceof RequestExpiredError ? 410 : null;
  return { status, message, delayMs, mayHaveBeenApplied: true };
}

function delayOf(count: number, config: CompleteRetryConfig, random: () => number): number {
  const { retryDelayBaseMs, retryDelayMaxMs, jitterFactor } = config;
  const delayMs = growingPauseMs({ firstMs: retryDelayBaseMs, longestMs: retryDelayMaxMs }, count);
  const jittered = delayMs + delayMs * jitterFactor * (2 * random() - 1);
  return Math.min(Math.max(0, jittered), retryDelayMaxMs);
}

const maxHandlers = 100;

/** The handler that equal sampling clients of a host share; the server's flags count. */
export function retryHandlerFor(
  host: Connection,
  targetName: string,
  retryConfig: CompleteRetryConfig,
): RetryHandler {
  const { config, runtime, telemetry } = host;
  const enableStuckDetection =
    retryConfig.enableStuckDetection && config.sampleEnableStuckDetection;
  const effective = { ...retryConfig, enableStuckDetection };
  const handlers = host.shared(newHandlers);
  const known = handlers.find(
    (one) => one.targetName === targetName && one.handler.isFor(effective),
  );
  if (known) return known.handler;
  const maxConcurrent = Math.max(1, config.sampleMaxConcurrentRequests);
  const handler = new RetryHandler(runtime, telemetry, effective, maxConcurrent);
  if (handlers.length >= maxHandlers) handlers.shift();
  handlers.push({ targetName, handler });
  return handler;
}

function newHandlers(): { readonly targetName: string; readonly handler: RetryHandler }[] {
  return [];
}

const retryConfigOptions = {
  /**
   * Fails all samples of a client when none made progress for this long.
   * @default 7200000
   */
  progressTimeoutMs: option<number>(),
  /**
   * Wait after the first failure in milliseconds; doubles with each further one.
   * @default 500
   */
  retryDelayBaseMs: option<number>(),
  /**
   * Longest wait between two tries in milliseconds.
   * @default 10000
   */
  retryDelayMaxMs: option<number>(),
  /**
   * Share of the delay that is random.
   * @default 0.25
   */
  jitterFactor: option<number>(),
  /**
   * False makes every sample once.
   * @default true
   */
  enableRetries: option<boolean>(),
  /**
   * False lets samples wait without end when nothing makes progress.
   * @default true
   */
  enableStuckDetection: option<boolean>(),
  /** Decides what is tried again; by default lost connections, expired results, 408, 409, 429 and 5xx. */
  isRetryable: option<(error: unknown) => boolean>(),
};

/** How samples are tried again. */
export interface RetryConfig extends OptionsOf<typeof retryConfigOptions> {}

/** A complete and checked `RetryConfig`. */
export type CompleteRetryConfig = Readonly<
  Record<"progressTimeoutMs" | "retryDelayBaseMs" | "retryDelayMaxMs" | "jitterFactor", number> &
    Record<"enableRetries" | "enableStuckDetection", boolean> &
    Pick<RetryConfig, "isRetryable">
>;

/** Fills defaults in and refuses what cannot be meant. */
export function completeRetryConfig(config: RetryConfig = {}): CompleteRetryConfig {
  checkOptions(config, [retryConfigOptions], "retryConfig");
  const complete: CompleteRetryConfig = {
    progressTimeoutMs: config.progressTimeoutMs ?? 7_200_000,
    retryDelayBaseMs: config.retryDelayBaseMs ?? 500,
    retryDelayMaxMs: config.retryDelayMaxMs ?? 10_000,
    jitterFactor: config.jitterFactor ?? 0.25,
    enableRetries: config.enableRetries ?? true,
    enableStuckDetection: config.enableStuckDetection ?? true,
    isRetryable: config.isRetryable,
  };
  const check = (name: keyof RetryConfig, isValid: boolean, wanted: string): void => {
    if (!isValid) throw new ArgumentError(`retryConfig.${name}`, `must be ${wanted}`);
  };
  check("progressTimeoutMs", complete.progressTimeoutMs > 0, "above 0");
  check("retryDelayBaseMs", complete.retryDelayBaseMs >= 0, "0 or more");
  check("retryDelayMaxMs", complete.retryDelayMaxMs >= 0, "0 or more");
  check("jitterFactor", complete.jitterFactor >= 0 && complete.jitterFactor <= 1, "from 0 to 1");
  return complete;
}
