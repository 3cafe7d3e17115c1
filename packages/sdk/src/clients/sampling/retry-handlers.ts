import type { Session } from "../../session/session.js";
import type { CompleteRetryConfig } from "../retry-config.js";
import { RetryHandler } from "./retry-handler.js";

const maxHandlers = 100;
const handlersBySession = new WeakMap<Session, Map<string, RetryHandler>>();

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
  const key = JSON.stringify([samplingSessionId, effective]);
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
