import { TinkerError } from "../../errors/tinker-error.js";
import type { ConnectionOptions } from "../../session/connection-plan.js";
import type { ConnectionSnapshot } from "../../session/connection.js";
import type { Session } from "../../session/session.js";
import { noTelemetry } from "../../telemetry/sink.js";
import { localBaseUrl } from "../../transport/base-url.js";
import { accessHeaders } from "../../transport/default-headers.js";
import type { CompleteRetryConfig, RetryConfig } from "../retry-config.js";

/** A sampling client as plain data: can be posted to a worker. Holds the credential; keep it secret. */
export interface SamplingClientState {
  /** The session that the samples belong to. */
  readonly sessionId: string;
  /** The weights that are sampled from. */
  readonly samplingSessionId: string;
  /** How to reach the server. */
  readonly options: Omit<ConnectionOptions, "fetch">;
  /** The command that prints the credential, where one does. */
  readonly credentialCommand: string | undefined;
  /** How samples are tried again. */
  readonly retryConfig: Omit<RetryConfig, "isRetryable">;
  /** The server's configuration, so that it is not requested again. */
  readonly snapshot: ConnectionSnapshot;
}

/** Describes a sampling client so that another thread can go on with it. */
export function transferState(
  session: Session,
  samplingSessionId: string,
  { isRetryable, ...retryConfig }: CompleteRetryConfig,
): SamplingClientState {
  const { plan } = session;
  const { fetch, defaultHeaders, defaultQuery, sockets, dialect } = plan.options;
  if (fetch || plan.baseUrl === localBaseUrl) {
    throw notTransferable(
      `that does not use the network (${fetch ? "fetch option" : localBaseUrl})`,
      "serve the engine and use its URL",
    );
  }
  if (isRetryable) {
    throw notTransferable("with retryConfig.isRetryable, a function,", "leave it out");
  }
  return {
    sessionId: session.sessionId,
    samplingSessionId,
    // What came from the environment is written down: the other thread may have another one.
    options: {
      baseUrl: plan.baseUrl,
      apiKey: plan.credential.key,
      timeoutMs: plan.timeoutMs,
      maxRetries: plan.maxRetries,
      defaultHeaders: { ...accessHeaders(plan.runtime.env), ...defaultHeaders },
      defaultQuery,
      sockets,
      dialect,
      telemetry: session.telemetry !== noTelemetry,
    },
    credentialCommand: plan.credential.command,
    retryConfig,
    snapshot: session.snapshot(),
  };
}

function notTransferable(which: string, suggestion: string): TinkerError {
  return new TinkerError(
    `A sampling client ${which} cannot be handed to another thread; ${suggestion}.`,
    { code: "not_transferable" },
  );
}
