import {
  APIConnectionError,
  APIStatusError,
  APITimeoutError,
  statusError,
  type Attempt,
} from "../../errors/api-error.js";
import {
  RequestExpiredError,
  RequestFailedError,
  ResultError,
} from "../../errors/request-failed-error.js";
import { SideThreadMessageError } from "../../errors/side-thread-error.js";

/** An error as plain data, because classes do not survive the way between threads. */
export interface ErrorRecord {
  readonly kind: "status" | "connection" | "timeout" | "failed" | "expired" | "result" | "other";
  readonly message: string;
  readonly requestId: string;
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly attempts: readonly Attempt[];
  readonly category: "unknown" | "server" | "user";
  readonly cause: ErrorRecord | null;
}

/** Writes an error down. */
export function recordError(error: unknown): ErrorRecord {
  const fields = error as Partial<Omit<ErrorRecord, "cause">> & { readonly cause?: unknown };
  return {
    kind: kindOf(error),
    message: error instanceof Error ? error.message : String(error),
    requestId: fields.requestId ?? "",
    status: fields.status ?? 0,
    body: fields.body ?? null,
    headers: fields.headers ?? {},
    attempts: fields.attempts ?? [],
    category: fields.category ?? "unknown",
    cause: fields.cause instanceof Error ? recordError(fields.cause) : null,
  };
}

/** Makes the error again; one of a class that is not known keeps its text. */
export function restoreError(record: ErrorRecord): Error {
  const { message, requestId, status, body, headers, attempts, category } = record;
  const cause = record.cause ? restoreError(record.cause) : undefined;
  switch (record.kind) {
    case "status":
      return statusError(status, { body, headers, attempts, cause });
    case "timeout":
      return new APITimeoutError(message, { attempts, cause });
    case "connection":
      return new APIConnectionError(message, { attempts, cause });
    case "failed":
      return new RequestFailedError(message, { requestId, category, cause });
    case "expired":
      return new RequestExpiredError(requestId, { cause });
    case "result":
      return new ResultError(requestId, message, { cause });
    case "other":
      return new SideThreadMessageError(message, { cause });
  }
}

function kindOf(error: unknown): ErrorRecord["kind"] {
  if (error instanceof APIStatusError) return "status";
  if (error instanceof APITimeoutError) return "timeout";
  if (error instanceof APIConnectionError) return "connection";
  if (error instanceof RequestFailedError) return "failed";
  if (error instanceof RequestExpiredError) return "expired";
  return error instanceof ResultError ? "result" : "other";
}
