import { APITimeoutError, type Attempt } from "../errors/api-error.js";
import { CancelledError } from "../errors/tinker-error.js";
import { abortable } from "../runtime/cancellation.js";
import type { TelemetrySink } from "../telemetry/sink.js";
import { describeFacts, inspectSymbol } from "../types/inspect.js";
import {
  type FutureState,
  type FutureStatus,
  type FutureTimings,
  checkBounds,
  type Operation,
  type OperationOptions,
} from "./operation.js";

/** What surrounds an operation. */
export interface OperationContext {
  readonly telemetry: TelemetrySink;
  /** Aborts when the client is closed. */
  readonly closed: AbortSignal;
}

let nextOperationId = 0;

const ignore = (): void => {};

/**
 * The result of an operation that was started when it was called.
 *
 * - Awaiting it any number of times gives the same result; nothing is sent again.
 * - A failed future that is never awaited does not end the process.
 * - `signal` and `timeoutMs` of the call give the operation up; those of `result` only the waiting.
 */
export class ApiFuture<T> implements Promise<T> {
  /** Names the class in printed output. */
  readonly [Symbol.toStringTag] = "ApiFuture";
  readonly #operation: Operation;
  readonly #promise: Promise<T>;

  private constructor(operation: Operation, promise: Promise<T>) {
    this.#operation = operation;
    this.#promise = promise;
    promise.catch(ignore);
  }

  /**
   * Starts an operation.
   * @internal
   */
  static start<T>(
    operation: Operation,
    options: OperationOptions,
    context: OperationContext,
    work: (operation: Operation) => Promise<T>,
  ): ApiFuture<T> {
    checkBounds(options);
    operation.bind(options, context.closed);
    return new ApiFuture(operation, supervise(operation, context.telemetry, work));
  }

  /** The server's id of the request (the last one accepted, of several); null before that. */
  get requestId(): string | null {
    return this.#operation.status.requestIds.at(-1) ?? null;
  }

  /** Where the operation stands. */
  get state(): FutureState {
    return this.#operation.status.state;
  }

  /** State, reason of a pause, request ids and number of polls at this moment. */
  get status(): FutureStatus {
    return this.#operation.status;
  }

  /** Where the time went so far. */
  get timings(): FutureTimings {
    return this.#operation.timings;
  }

  /** Failed tries that were made good by another one, oldest first (the last hundred). */
  get attempts(): readonly Attempt[] {
    return this.#operation.attempts;
  }

  /** How it stands, for logs. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, subject } = this.#operation;
    const { state, reason } = this.status;
    return { operation: name, subject, state, reason, requestId: this.requestId };
  }

  /** How it is printed. */
  [inspectSymbol](): string {
    return describeFacts("ApiFuture", this.toJSON());
  }

  /** Waits for the result, within bounds of its own: when they end, the operation goes on. */
  async result(options: OperationOptions = {}): Promise<T> {
    checkBounds(options);
    const { signal, timeoutMs } = options;
    if (timeoutMs === undefined) return abortable(this.#promise, signal);
    const { clock } = this.#operation.runtime;
    const timeout = new AbortController();
    const cancelTimer = clock.schedule(timeoutMs, () =>
      timeout.abort(
        new APITimeoutError(
          `${this.#operation.name} has no result after ${timeoutMs} ms; it is ${this.state} and goes on.`,
        ),
      ),
    );
    try {
      return await abortable(abortable(this.#promise, signal), timeout.signal);
    } finally {
      cancelTimer();
    }
  }

  /** Gives the operation up. What the server already has is not undone. */
  cancel(reason: unknown = new CancelledError()): void {
    this.#operation.abort(reason);
  }

  /** Calls back whenever the status changes; returns how to stop. */
  onState(listener: (status: FutureStatus) => void): () => void {
    return this.#operation.onStatus(listener);
  }

  /** The status now and after every change, until the operation is over. */
  [Symbol.asyncIterator](): AsyncIterator<FutureStatus, undefined> {
    return statusUpdates(this.#operation);
  }

  /** Waits for the result, as that of every promise; `await` calls it. */
  // oxlint-disable-next-line unicorn/no-thenable -- being awaitable is the purpose
  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#promise.then(onFulfilled, onRejected);
  }

  /** Handles a failure, as that of every promise. */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.#promise.catch(onRejected);
  }

  /** Runs when the operation is over, as that of every promise. */
  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.#promise.finally(onFinally);
  }
}

async function supervise<T>(
  operation: Operation,
  telemetry: TelemetrySink,
  work: (operation: Operation) => Promise<T>,
): Promise<T> {
  const { events, clock } = operation.runtime;
  const { name, subject, signal } = operation;
  const operationId = nextOperationId++;
  const startedAt = clock.now();
  if (events.isActive)
    events.emit({ type: "operationStart", operationId, operation: name, subject });
  try {
    signal.throwIfAborted();
    const result = await work(operation);
    operation.finish("done");
    reportEnd(operation, operationId, startedAt);
    return result;
  } catch (error) {
    if (!signal.aborted) await telemetry.captureFatal(error);
    operation.finish("failed");
    reportEnd(operation, operationId, startedAt, { error });
    throw error;
  }
}

function reportEnd(
  { name, subject, status, runtime }: Operation,
  operationId: number,
  startedAt: number,
  failure: { readonly error?: unknown } = {},
): void {
  const { events, clock } = runtime;
  if (!events.isActive) return;
  events.emit({
    type: "operationEnd",
    operationId,
    operation: name,
    subject,
    durationMs: clock.now() - startedAt,
    requestIds: status.requestIds,
    ...failure,
  });
}

/** The status of an operation now and after each change; ends with it. */
async function* statusUpdates(operation: Operation): AsyncGenerator<FutureStatus, undefined> {
  const pending: FutureStatus[] = [operation.status];
  let wake: (() => void) | undefined;
  const stop = operation.onStatus((status) => {
    pending.push(status);
    wake?.();
  });
  try {
    for (;;) {
      const status = pending.shift();
      if (status) {
        yield status;
        if (status.state === "done" || status.state === "failed") return undefined;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    stop();
  }
}
