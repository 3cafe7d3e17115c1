import { APIStatusError } from "../errors/api-error.js";
import type { Environment } from "../runtime/environment.js";
import type { Logger } from "../runtime/logger.js";
import { sdkVersion } from "../runtime/version.js";
import { noTelemetry, type TelemetrySink } from "../telemetry/sink.js";
import { openTelemetry } from "../telemetry/telemetry.js";
import type { Connection } from "./connection.js";
import { Heartbeat } from "./heartbeat.js";
import { Session, type SessionEnd } from "./session.js";

/** What a new session is created with. */
export interface SessionOptions {
  readonly userMetadata: Readonly<Record<string, string>> | undefined;
  readonly projectId: string | undefined;
  readonly displayName: string | undefined;
}

/** Creates a session at the server and keeps it alive. */
export async function openSession(
  connection: Connection,
  options: SessionOptions,
  signal: AbortSignal,
): Promise<Session> {
  const { runtime, api } = connection;
  const created = await api.call(
    "createSession",
    {
      tags: readTags(runtime.env),
      userMetadata: options.userMetadata ?? {},
      sdkVersion,
      projectId: options.projectId,
      displayName: options.displayName,
    },
    { signal },
  );
  logMessages(created, runtime.logger);
  runtime.events.emit({ type: "sessionStart", sessionId: created.sessionId });
  return joinSession(connection, created.sessionId);
}

/** Takes part in a session that exists already. */
export function joinSession(connection: Connection, sessionId: string): Session {
  const { runtime, api, closed, parts } = connection;
  const heartbeat = new Heartbeat(runtime, sessionId, (isBackground) =>
    api.call("sessionHeartbeat", { sessionId }, { isBackground, signal: closed }),
  );
  parts.dynamicConfig.startRefreshing();
  const telemetry = sessionTelemetry(connection, sessionId);
  return new Session(connection, sessionId, telemetry, heartbeat);
}

const longestDetail = 2_000;

/**
 * Reports how the program of a session ended. A server that does not know this, or does not answer, finds out by the
 * missing heartbeats.
 */
export async function finishSession(
  { sessionId, api, runtime }: Session,
  { status, detail = "" }: SessionEnd,
  signal: AbortSignal,
): Promise<void> {
  const body = { reason: { type: status }, detail: detail.slice(0, longestDetail) || null };
  try {
    await api.call("finishSession", body, { params: { sessionId }, signal, maxRetries: 2 });
  } catch (error) {
    const isUnknown = error instanceof APIStatusError && isMissing(error.status);
    const level = isUnknown ? "debug" : "warn";
    runtime.logger[level](`session ${sessionId} could not be finished: ${String(error)}`);
  }
}

function isMissing(status: number): boolean {
  return status === 404 || status === 405 || status === 410 || status === 501;
}

function sessionTelemetry(connection: Connection, sessionId: string): TelemetrySink {
  if (connection.telemetry === noTelemetry) return noTelemetry;
  return openTelemetry({ api: connection.api, runtime: connection.runtime, sessionId });
}

function readTags(env: Environment): string[] {
  const tags = (env["TINKER_TAGS"] ?? "").split(",").map((tag) => tag.trim());
  return [...new Set(tags.filter((tag) => tag !== ""))];
}

function logMessages(
  created: {
    infoMessage: string | null;
    warningMessage: string | null;
    errorMessage: string | null;
  },
  logger: Logger,
): void {
  if (created.infoMessage) logger.info(created.infoMessage);
  if (created.warningMessage) logger.warn(created.warningMessage);
  if (created.errorMessage) logger.error(created.errorMessage);
}
