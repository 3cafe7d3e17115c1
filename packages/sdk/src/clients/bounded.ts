import { APITimeoutError } from "../errors/api-error.js";
import { checkBounds, type OperationOptions } from "../futures/operation.js";
import { abortable, onAbort } from "../runtime/cancellation.js";
import type { Runtime } from "../runtime/runtime.js";
import type { TelemetrySink } from "../telemetry/sink.js";

/** The context of a call: where its errors are reported, and when it must end. */
export interface CallContext {
  readonly runtime: Runtime;
  readonly telemetry: TelemetrySink;
  readonly closed: AbortSignal;
}

/** Runs a call that is awaited at once, within the caller's bounds and the client's life. */
export async function bounded<T>(
  what: string,
  options: OperationOptions,
  { runtime, telemetry, closed }: CallContext,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  checkBounds(options);
  const controller = new AbortController();
  const { signal } = controller;
  const abort = (reason: unknown): void => controller.abort(reason);
  const { timeoutMs } = options;
  const undo = [onAbort(closed, abort), onAbort(options.signal, abort)];
  if (timeoutMs !== undefined) {
    const startedAt = runtime.clock.now();
    const timeout = (): void => {
      const reason = runtime.retries.lastFailureSince(startedAt);
      abort(new APITimeoutError(`${what} was not finished after ${timeoutMs} ms.${reason}`));
    };
    undo.push(runtime.clock.schedule(timeoutMs, timeout));
  }
  try {
    signal.throwIfAborted();
    return await abortable(call(signal), signal);
  } catch (error) {
    if (!signal.aborted) await telemetry.captureFatal(error);
    throw error;
  } finally {
    for (const stop of undo) stop();
  }
}
