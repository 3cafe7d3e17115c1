import { CliError } from "../errors/cli-error.js";
import type { Style } from "../terminal/style.js";

/** An error for people: what happened, and more where there is more. */
export interface ErrorDescription {
  readonly heading: string;
  readonly detail: string | undefined;
}

const headings: Readonly<Record<string, string>> = {
  http_400: "Invalid request",
  http_401: "Authentication failed",
  http_403: "Permission denied",
  http_404: "Resource not found",
  http_422: "Invalid data provided",
  http_429: "Rate limit exceeded",
  timeout: "Request timeout",
  connection_error: "Connection failed",
};

/** Codes of errors whose message says it all. */
const plainCodes = new Set([
  "invalid_argument",
  "missing_dependency",
  "bad_archive",
  "tokenizer_not_found",
  "data",
  "renderer_error",
  "data_directory_in_use",
  "data_directory_unusable",
]);

/** What to tell about an error. Errors of other packages are known by their codes, not by importing them. */
export function describeError(error: unknown): ErrorDescription {
  if (error instanceof CliError) return { heading: error.message, detail: error.detail };
  if (!(error instanceof Error)) return { heading: unexpected(String(error)), detail: undefined };
  const code = codeOf(error);
  if (isUnknownModel(error)) return { heading: detailOf(error), detail: undefined };
  const heading = headings[code] ?? headingOfStatus(code);
  if (heading !== undefined) {
    const wayOut = code === "http_401" ? "\nCheck --api-key or TINKER_API_KEY." : "";
    return { heading, detail: detailOf(error) + wayOut };
  }
  if (code === "credential") {
    return { heading: "Failed to connect to Tinker API", detail: error.message };
  }
  if (plainCodes.has(code) || ["EngineError", "HubError", "ServerError"].includes(error.name)) {
    return { heading: error.message, detail: undefined };
  }
  if (["RequestFailedError", "ResultError", "RequestExpiredError"].includes(error.name)) {
    return { heading: "The server could not do this", detail: error.message };
  }
  if (isSystemError(error)) return { heading: error.message, detail: undefined };
  return { heading: unexpected(error.message), detail: undefined };
}

/** An error as it is printed: what happened on one line, more below it. */
export function errorText(error: unknown, { red }: Pick<Style, "red">): string {
  const { heading, detail } = describeError(error);
  return `${red("Error:")} ${heading}\n${detail ? `${detail}\n` : ""}`;
}

function headingOfStatus(code: string): string | undefined {
  const status = Number(/^http_(\d+)$/.exec(code)?.[1]);
  if (Number.isNaN(status)) return undefined;
  return status >= 500 ? "Internal server error" : `API error (status ${status})`;
}

/** A model that cannot be found is told in the server's words alone. */
function isUnknownModel(error: Error): boolean {
  const body: unknown = "body" in error ? error.body : null;
  const code: unknown = (body as { code?: unknown } | null)?.code;
  return code === "model_not_found" || code === "hub_unreachable";
}

/** Servers put their words into the body under one of a few names. */
function detailOf(error: Error): string {
  const body: unknown = "body" in error ? error.body : null;
  if (typeof body === "object" && body !== null) {
    for (const field of ["error", "detail", "message"] as const) {
      const text: unknown = (body as Record<string, unknown>)[field];
      if (typeof text === "string" && text !== "") return text;
    }
  }
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : "";
  return `${error.message}${cause}`;
}

/** Errors of the file system and the network carry the name of a system call. */
function isSystemError(error: Error): boolean {
  return "syscall" in error && typeof error.syscall === "string";
}

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

function unexpected(message: string): string {
  return `Unexpected error occurred: ${message}`;
}
