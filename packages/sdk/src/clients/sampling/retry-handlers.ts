import type { Session } from "../../session/session.js";
import type { CompleteRetryConfig } from "../retry-config.js";
import { RetryHandler } from "./retry-handler.js";

const maxHandlers = 100;
const handlersBySession = new WeakMap<Session, Map<string, RetryHandler>>();
const judges = new WeakMap<object, number>();
let judgeCount = 0;

/** The handler that equal sampling clients of a session share; the server's flags count. */
export function retryHandlerFor(
  session: Session,
  samplingSessionId: string,
  retryConfig: CompleteRetryConfig,
): RetryHandler {
  const { config } = session.connection;
  const effective = {
    ...retryConfig,
    enableStuckDetection: retryConfig.enableStuckDetection && config.sampleEnableStuckDetection,
  };
  const handlers = handlersBySession.get(session) ?? new Map<string, RetryHandler>();
  handlersBySession.set(session, handlers);
  const key = JSON.stringify([samplingSessionId, effective, judgeId(effective.isRetryable)]);
  const existing = handlers.get(key);
  if (existing) return existing;
  const handler = new RetryHandler(
    session.runtime,
    session.telemetry,
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
