import { ArgumentError } from "../errors/argument-error.js";
import { readVariable, type Environment } from "../runtime/environment.js";

/** The hosted service. */
export const hostedBaseUrl = "https://tinker.thinkingmachines.dev/services/tinker-prod";

/** The address of the engine on this machine. */
export const localBaseUrl = "local:";

/** Where requests go: an origin and the path that stands before every endpoint. */
export interface BaseUrl {
  readonly origin: string;
  /** Without a trailing slash; empty at the root. */
  readonly prefix: string;
}

/** The base URL that was asked for: argument, else `TINKER_BASE_URL`; undefined when neither is set. */
export function chosenBaseUrl(given: string | undefined, env: Environment): string | undefined {
  return given || readVariable(env, "TINKER_BASE_URL");
}

/** Reads a base URL; throws `ArgumentError` for anything that is not http or https. */
export function parseBaseUrl(text: string): BaseUrl {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new ArgumentError(
      "baseUrl",
      `${JSON.stringify(text)} is not a URL; expected http://host:port, https://host/path or local:`,
    );
  }
  if (url.search || url.hash || url.username) {
    throw new ArgumentError("baseUrl", "must not have a query, a fragment or a user name");
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, "") };
}
