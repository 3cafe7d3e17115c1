import { option, type OptionsOf } from "../errors/check-options.js";
import { ArgumentError } from "../errors/argument-error.js";
import { readSwitch, readVariable, type Environment } from "../runtime/environment.js";
import type { Runtime } from "../runtime/runtime.js";
import { chosenBaseUrl, hostedBaseUrl, localBaseUrl, parseBaseUrl } from "../transport/base-url.js";
import { findCredential, type CredentialSource } from "../transport/credentials.js";
import type { Query } from "../transport/api.js";
import type { FetchHandler } from "../transport/fetch-transport.js";
import type { Headers } from "../transport/message.js";
import { isHeaderName, problemOfHeaderValue } from "../transport/sendable-header.js";
import type { SocketOptions } from "../transport/socket-transport.js";
import type { DialectOption } from "./dialect.js";
import type { LocalPlace } from "./local-server.js";

/** The fields of `ConnectionOptions`. */
export const connectionOptions = {
  /**
   * Longest silence on one HTTP request.
   * @default 60000
   */
  timeoutMs: option<number>(),
  /**
   * `https://...`, `http://...`, or `local:` for the engine on this machine; `local:FOLDER` names its data directory.
   * @default TINKER_BASE_URL, else the hosted service
   */
  baseUrl: option<string>(),
  /**
   * Where `local:` keeps everything; `memory` is a temporary folder that is removed when the last client closes.
   * @default TINKER_TS_DATA_DIR, else ~/.tinker-ts
   */
  dataDir: option<string>(),
  /**
   * Runs the engine of `local:` in this process, which then has the data directory for itself.
   * @default TINKER_TS_IN_PROCESS, else true for `memory` alone
   */
  inProcess: option<boolean>(),
  /**
   * The key (`tml-...`) or a ready token (`eyJ...`).
   * @default TINKER_API_KEY, else what TINKER_CREDENTIAL_CMD prints, else the key that `tinker-ts auth login` stored
   */
  apiKey: option<string>(),
  /**
   * How often a call is tried again in a row, before a longer pause.
   * @default 10
   */
  maxRetries: option<number>(),
  /** Sent with every request. */
  defaultHeaders: option<Headers>(),
  /** Appended to every URL. */
  defaultQuery: option<Query>(),
  /** Answers requests in place of the network. */
  fetch: option<FetchHandler>(),
  /** How sockets are opened. */
  sockets: option<SocketOptions>(),
  /**
   * The form of large messages; by default what the server is found to speak.
   * @default "auto"
   */
  dialect: option<DialectOption>(),
  /**
   * Samples in a thread of its own, so that thousands of samples do not hold this one up.
   * @default TINKER_SUBPROCESS_SAMPLING, else false
   */
  sideThread: option<boolean>(),
  /**
   * Whether errors and diagnostics are reported to the server.
   * @default TINKER_TELEMETRY, else true
   */
  telemetry: option<boolean>(),
};

/** How to reach a server. */
export interface ConnectionOptions extends OptionsOf<typeof connectionOptions> {}

/** Options that were checked and completed; nothing was opened yet. */
export interface ConnectionPlan {
  readonly options: ConnectionOptions;
  /** A URL, or `local:`. */
  readonly baseUrl: string;
  /** Set for `local:`. */
  readonly local: LocalPlace | undefined;
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
  const local = chosen?.startsWith(localBaseUrl)
    ? localPlace(chosen.slice(localBaseUrl.length), options, runtime.env)
    : undefined;
  const baseUrl = local ? localBaseUrl : (chosen ?? hostedBaseUrl);
  if (!local) {
    parseBaseUrl(baseUrl);
    const stray = (["dataDir", "inProcess"] as const).find((name) => options[name] !== undefined);
    if (stray) throw new ArgumentError(stray, `needs baseUrl "local:", but baseUrl is ${baseUrl}`);
  }
  // A local server has a key of its own.
  const credential = local
    ? { key: options.apiKey, command: undefined, isRequired: false }
    : findCredential(options.apiKey, runtime.env, chosen === undefined);
  return { options, baseUrl, local, credential, timeoutMs, maxRetries, runtime };
}

function localPlace(
  folder: string,
  { dataDir, inProcess }: ConnectionOptions,
  env: Environment,
): LocalPlace {
  if (folder !== "" && dataDir !== undefined && dataDir !== folder) {
    throw new ArgumentError("dataDir", `is ${dataDir}, but baseUrl names ${folder}`);
  }
  const place = dataDir ?? (folder || readVariable(env, "TINKER_TS_DATA_DIR") || "");
  const isTemporary = place === "memory";
  if (isTemporary && inProcess === false) {
    throw new ArgumentError("inProcess", 'must not be false with dataDir "memory"');
  }
  const isInProcess = isTemporary || (inProcess ?? readSwitch(env, "TINKER_TS_IN_PROCESS", false));
  return { dataDir: place, isInProcess };
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
