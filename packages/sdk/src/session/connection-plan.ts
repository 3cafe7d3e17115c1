import { ArgumentError } from "../errors/argument-error.js";
import type { Runtime } from "../runtime/runtime.js";
import { chosenBaseUrl, hostedBaseUrl, localBaseUrl, parseBaseUrl } from "../transport/base-url.js";
import { findCredential, type CredentialSource } from "../transport/credentials.js";
import type { Query } from "../transport/endpoint-path.js";
import type { FetchHandler } from "../transport/fetch-transport.js";
import type { Headers } from "../transport/message.js";
import { isHeaderName, problemOfHeaderValue } from "../transport/sendable-header.js";
import type { SocketOptions } from "../transport/socket-transport.js";
import type { DialectOption } from "./dialect.js";

/** How to reach a server. */
export interface ConnectionOptions {
  /**
   * `https://...`, `http://...`, or `local:` for the engine in this process.
   * @default TINKER_BASE_URL, else the hosted service
   */
  readonly baseUrl?: string | undefined;
  /**
   * The key (`tml-...`) or a ready token (`eyJ...`).
   * @default TINKER_API_KEY
   */
  readonly apiKey?: string | undefined;
  /**
   * Longest silence on one HTTP request.
   * @default 60000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How often one HTTP call is tried again.
   * @default 10
   */
  readonly maxRetries?: number | undefined;
  /** Sent with every request. */
  readonly defaultHeaders?: Headers | undefined;
  /** Appended to every URL. */
  readonly defaultQuery?: Query | undefined;
  /** Answers requests in place of the network. */
  readonly fetch?: FetchHandler | undefined;
  /** How sockets are opened. */
  readonly sockets?: SocketOptions | undefined;
  /**
   * The form of large messages; by default what the server is found to speak.
   * @default "auto"
   */
  readonly dialect?: DialectOption | undefined;
  /**
   * Samples in a thread of its own, so that thousands of samples do not hold this one up.
   * @default TINKER_SUBPROCESS_SAMPLING, else false
   */
  readonly sideThread?: boolean | undefined;
  /**
   * Whether errors and diagnostics are reported to the server.
   * @default TINKER_TELEMETRY, else true
   */
  readonly telemetry?: boolean | undefined;
}

/** Options that were checked and completed; nothing was opened yet. */
export interface ConnectionPlan {
  readonly options: ConnectionOptions;
  /** A URL, or `local:`. */
  readonly baseUrl: string;
  readonly credential: CredentialSource;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly runtime: Runtime;
}

/** Checks options before anything is opened, so that mistakes show where they were made. */
export function planConnection(options: ConnectionOptions, runtime: Runtime): ConnectionPlan {
  const { timeoutMs = 60_000, maxRetries = 10 } = options;
  if (!(timeoutMs > 0)) throw new ArgumentError("timeoutMs", "must be above 0");
  if (!Number.isInteger(maxRetries) || maxRetries < 0) {
    throw new ArgumentError("maxRetries", "must be a whole number of 0 or more");
  }
  checkHeaders(options.defaultHeaders);
  const chosen = chosenBaseUrl(options.baseUrl, runtime.env);
  const baseUrl = chosen ?? hostedBaseUrl;
  if (baseUrl !== localBaseUrl) parseBaseUrl(baseUrl);
  const credential = findCredential(options.apiKey, runtime.env, chosen === undefined);
  return { options, baseUrl, credential, timeoutMs, maxRetries, runtime };
}

/** A header that cannot be sent would fail every request, over and over. */
function checkHeaders(headers: Headers = {}): void {
  for (const [name, value] of Object.entries(headers)) {
    const problem = isHeaderName(name)
      ? problemOfHeaderValue(value)
      : "is not the name of a header";
    if (problem) throw new ArgumentError(`defaultHeaders.${name}`, problem);
  }
}
