import type { CompleteRetryConfig } from "../retry-config.js";
import { RetryHandler } from "./retry-handler.js";
import type { SamplingHost } from "./sampling-host.js";

const maxHandlers = 100;
const handlersByHost = new WeakMap<SamplingHost, Map<string, RetryHandler>>();
const judges = new WeakMap<object, number>();
let judgeCount = 0;

/** The handler that equal sampling clients of a host share; the server's flags count. */
export function retryHandlerFor(
  host: SamplingHost,
  targetName: string,
  retryConfig: CompleteRetryConfig,
): RetryHandler {
  const { config } = host.connection;
  const effective = {
    ...retryConfig,
    enableStuckDetection: retryConfig.enableStuckDetection && config.sampleEnableStuckDetection,
  };
  const handlers = handlersByHost.get(host) ?? new Map<string, RetryHandler>();
  handlersByHost.set(host, handlers);
  const key = JSON.stringify([targetName, effective, judgeId(effective.isRetryable)]);
  const existing = handlers.get(key);
  if (existing) return existing;
  const handler = new RetryHandler(
    host.runtime,
    host.telemetry,
    effective,
    Math.max(1, config.sampleMaxConcurrentRequests),
  );
  const oldest = handlers.size >= maxHandlers ? handlers.keys().next().value : undefined;
  if (oldest !== undefined) handlers.delete(oldest);
  handlers.set(key, handler);
  return handler;
}

/** Functions have no text that tells them apart, so they are numbered. */
function judgeId(isRetryable: CompleteRetryConfig["isRetryable"]): number | null {
  if (!isRetryable) return null;
  const id = judges.get(isRetryable) ?? judgeCount++;
  judges.set(isRetryable, id);
  return id;
}
