import { ArgumentError } from "../../errors/argument-error.js";
import { TinkerError } from "../../errors/tinker-error.js";
import { fromBase64, toBase64 } from "../../schema/base64.js";
import type { ConnectionOptions } from "../../session/connection-plan.js";
import type { ConnectionSnapshot } from "../../session/connection.js";
import type { Session } from "../../session/session.js";
import { noTelemetry } from "../../telemetry/sink.js";
import { localBaseUrl } from "../../transport/base-url.js";
import { accessHeaders } from "../../transport/default-headers.js";
import type { CompleteRetryConfig, RetryConfig } from "./retry-handler.js";

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

/** The address of a sampler, without a credential: a text that holds JSON, with the names of the official client. */
export function samplerHandle({ sessionId, plan }: Session, samplingSessionId: string): string {
  const { options, local, baseUrl } = plan;
  if (options.fetch || local?.isInProcess) {
    throw notTransferable("that does not use the network", "serve the engine and use its URL");
  }
  const state = {
    session_id: sessionId,
    sampling_session_id: samplingSessionId,
    holder: { base_url: local ? localBaseUrl + local.dataDir : baseUrl },
    record_stability_info: false,
  };
  return toBase64(new TextEncoder().encode(JSON.stringify(state)))
    .replaceAll("+", "-")
    .replaceAll("/", "_");
}

/** What a handle says. */
export interface SamplerAddress {
  readonly sessionId: string;
  readonly samplingSessionId: string;
  /** Undefined when the maker had it from its environment. */
  readonly baseUrl: string | undefined;
}

/** Reads a handle; throws `ArgumentError` for anything else. */
export function readSamplerHandle(handle: string): SamplerAddress {
  const { session_id: sessionId, sampling_session_id: samplingSessionId, holder } = decode(handle);
  if (typeof sessionId !== "string" || typeof samplingSessionId !== "string") throw notAHandle();
  const baseUrl = (holder as { readonly base_url?: unknown } | undefined)?.base_url;
  const isGiven = typeof baseUrl === "string" && baseUrl !== "";
  return { sessionId, samplingSessionId, baseUrl: isGiven ? baseUrl : undefined };
}

function decode(handle: string): Readonly<Record<string, unknown>> {
  try {
    const bytes = fromBase64(handle);
    const state: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof state === "object" && state !== null) return state as Record<string, unknown>;
  } catch {
    // Reported below.
  }
  throw notAHandle();
}

function notAHandle(): ArgumentError {
  return new ArgumentError("handle", "is not a sampler handle; getSamplerHandle() gives one");
}

function notTransferable(which: string, suggestion: string): TinkerError {
  return new TinkerError(
    `A sampling client ${which} cannot be handed to another thread; ${suggestion}.`,
    { code: "not_transferable" },
  );
}
