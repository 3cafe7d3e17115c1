import type { Environment } from "../runtime/environment.js";
import type { Logger } from "../runtime/logger.js";
import { sdkVersion } from "../runtime/version.js";
import { noTelemetry, type TelemetrySink } from "../telemetry/sink.js";
import { openTelemetry } from "../telemetry/telemetry.js";
import type { Connection } from "./connection.js";
import { Heartbeat } from "./heartbeat.js";
import { Session } from "./session.js";

/** What a new session is created with. */
export interface SessionOptions {
  readonly userMetadata: Readonly<Record<string, string>> | undefined;
  readonly projectId: string | undefined;
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
