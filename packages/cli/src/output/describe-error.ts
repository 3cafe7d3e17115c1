import { CliError } from "../errors/cli-error.js";
import type { Style } from "../terminal/style.js";

/** An error as it is printed: a heading, and details below it. */
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

/** Codes of errors with a complete message. */
const plainCodes = new Set([
  "invalid_argument",
  "missing_dependency",
  "bad_archive",
  "tokenizer_not_found",
  "data",
  "renderer_error",
  "data_directory_in_use",
  "data_directory_unusable",
  "run_failed",
]);

/** The text of an error. Errors of other packages are recognized by their codes, without importing them. */
export function describeError(error: unknown): ErrorDescription {
  if (error instanceof CliError) return { heading: error.message, detail: error.detail };
  if (!(error instanceof Error)) return { heading: unexpected(String(error)), detail: undefined };
  const code = codeOf(error);
  if (isUnknownModel(error)) return { heading: detailOf(error), detail: undefined };
  const heading = headings[code] ?? headingOfStatus(code);
  if (heading !== undefined) {
    const remedy = code === "http_401" ? "\nCheck --api-key or TINKER_API_KEY." : "";
    return { heading, detail: detailOf(error) + remedy };
  }
  if (code === "credential") {
    return { heading: "Failed to connect to Tinker API", detail: error.message };
  }
  if (error.name === "RunDiffersError" && "differences" in error) {
    const differences = (error.differences as readonly string[]).join("; ");
    const folder = error.message.replace(/^folder: | holds a run with other settings.*$/gs, "");
    return {
      heading: `${folder} holds a run with other settings: ${differences}.`,
      detail:
        "Use the same data and settings to resume it, --if-exists new to train in a numbered folder beside it,\n" +
        "--if-exists delete to replace it, or --output for another folder.",
    };
  }
  if (code === "group_failed") {
    return { heading: error.message, detail: stackLines(error.cause) };
  }
  if (plainCodes.has(code) || ["EngineError", "HubError", "ServerError"].includes(error.name)) {
    return { heading: error.message, detail: undefined };
  }
  if (["RequestFailedError", "ResultError", "RequestExpiredError"].includes(error.name)) {
    return { heading: "The server could not process the request", detail: error.message };
  }
  if (isSystemError(error)) return { heading: error.message, detail: undefined };
  return { heading: unexpected(error.message), detail: undefined };
}

/** An error as text: the heading on one line, details below it. */
export function errorText(error: unknown, { red }: Pick<Style, "red">): string {
  const { heading, detail } = describeError(error);
  return `${red("Error:")} ${heading}\n${detail ? `${detail}\n` : ""}`;
}

function headingOfStatus(code: string): string | undefined {
  const status = Number(/^http_(\d+)$/.exec(code)?.[1]);
  if (Number.isNaN(status)) return undefined;
  return status >= 500 ? "Internal server error" : `API error (status ${status})`;
}

/** For a model that cannot be found the server's message is complete. */
function isUnknownModel(error: Error): boolean {
  const body: unknown = "body" in error ? error.body : null;
  const code: unknown = (body as { code?: unknown } | null)?.code;
  return code === "model_not_found" || code === "hub_unreachable";
}

/** The server's message, which is in the body under one of a few names. */
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

/** The first lines of a stack: those of the user's own code. */
function stackLines(error: unknown): string | undefined {
  const stack = error instanceof Error ? error.stack : undefined;
  return stack?.split("\n").slice(1, 6).join("\n");
}

function unexpected(message: string): string {
  return `Unexpected error occurred: ${message}`;
}
