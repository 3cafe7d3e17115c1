import { TinkerError, type BlamesUser, type TinkerErrorOptions } from "./tinker-error.js";

/** The request an error belongs to; credentials are never part of it. */
export interface FailedRequest {
  /** The HTTP method. */
  readonly method: string;
  /** The address, without credentials. */
  readonly url: string;
}

/** One attempt of a call that was tried several times. */
export interface Attempt {
  /** HTTP status, or null when no answer arrived. */
  readonly status: number | null;
  /** What went wrong, in words. */
  readonly message: string;
  /** How long the client waited after this attempt before the next one; null for the last. */
  readonly delayMs: number | null;
  /** Whether the server may have acted on it without an answer that confirms it. */
  readonly mayHaveBeenApplied: boolean;
}

/** What an `APIError` carries besides its message. */
export interface APIErrorOptions extends TinkerErrorOptions {
  /** The request that failed. */
  readonly request?: FailedRequest | undefined;
  /** The answer's body: decoded JSON, else text. */
  readonly body?: unknown;
  /** Every attempt that was made, oldest first. */
  readonly attempts?: readonly Attempt[];
  /** A stable name of the problem. */
  readonly code?: string;
}

/** Base of the errors that an HTTP exchange can end in. */
export class APIError extends TinkerError {
  override readonly name: string = "APIError";
  /** The request that failed; null when there was none. */
  readonly request: FailedRequest | null;
  /** The answer's body: decoded JSON, else text, else null. */
  readonly body: unknown;
  /** Every attempt that was made, oldest first. */
  attempts: readonly Attempt[];

  constructor(message: string, options: APIErrorOptions = {}) {
    super(message, { code: "api_error", ...options });
    this.request = options.request ?? null;
    this.body = options.body ?? null;
    this.attempts = options.attempts ?? [];
  }
}

/** What an `APIConnectionError` carries besides its message. */
export interface APIConnectionErrorOptions extends APIErrorOptions {
  /**
   * False when the request certainly never left.
   * @default true
   */
  readonly wasSent?: boolean;
}

/** No usable answer arrived: refused, reset, a proxy's empty 400, or no progress for too long. */
export class APIConnectionError extends APIError {
  override readonly name: string = "APIConnectionError";
  /** False when the request certainly never left: the server cannot have acted on it. */
  readonly wasSent: boolean;

  constructor(message = "Connection error.", options: APIConnectionErrorOptions = {}) {
    super(message, { code: "connection_error", ...options });
    this.wasSent = options.wasSent ?? true;
  }

  override get isRetryable(): boolean {
    return true;
  }
}

/** What an `APITimeoutError` carries besides its message. */
export interface APITimeoutErrorOptions extends APIConnectionErrorOptions {
  /** Whether a part of the answer had arrived. */
  readonly hasBegun?: boolean;
}

/** The answer did not arrive in time. */
export class APITimeoutError extends APIConnectionError {
  override readonly name: string = "APITimeoutError";
  /** Whether a part of the answer had arrived. */
  readonly hasBegun: boolean;

  constructor(message = "Request timed out.", options: APITimeoutErrorOptions = {}) {
    super(message, { code: "timeout", ...options });
    this.hasBegun = options.hasBegun ?? false;
  }
}

/** A 2xx answer with a body of another shape or media type than promised. */
export class APIResponseValidationError extends APIError {
  override readonly name: string = "APIResponseValidationError";
  /** The HTTP status of the answer. */
  readonly status: number;

  constructor(message: string, options: APIErrorOptions & { status: number }) {
    super(message, { code: "response_validation", ...options });
    this.status = options.status;
  }
}

/** What an `APIStatusError` carries besides its message. */
export interface APIStatusErrorOptions extends APIErrorOptions {
  /** Headers of the answer, by their names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The server answered with a status other than 2xx. */
export class APIStatusError extends APIError implements BlamesUser {
  override readonly name: string = "APIStatusError";
  /** The HTTP status of the answer. */
  readonly status: number;
  /** Headers of the answer, by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, options: APIStatusErrorOptions = {}) {
    super(message, { code: `http_${status}`, ...options });
    this.status = status;
    this.headers = options.headers ?? {};
  }

  override get isRetryable(): boolean {
    return isRetryableStatus(this.status);
  }

  /** True for 4xx other than 408: the request was refused for what it is. */
  get blamesUser(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 408;
  }
}

/** 400 */
export class BadRequestError extends APIStatusError {
  override readonly name: string = "BadRequestError";
}
/** 401 */
export class AuthenticationError extends APIStatusError {
  override readonly name: string = "AuthenticationError";
}
/** 402: the account must be topped up. Requests wait for that, for as long as the server's flag says. */
export class BillingError extends APIStatusError {
  override readonly name: string = "BillingError";
}
/** 403 */
export class PermissionDeniedError extends APIStatusError {
  override readonly name: string = "PermissionDeniedError";
}
/** 404 */
export class NotFoundError extends APIStatusError {
  override readonly name: string = "NotFoundError";
}
/** 409 */
export class ConflictError extends APIStatusError {
  override readonly name: string = "ConflictError";
}
/** 422 */
export class UnprocessableEntityError extends APIStatusError {
  override readonly name: string = "UnprocessableEntityError";
}
/** 429 */
export class RateLimitError extends APIStatusError {
  override readonly name: string = "RateLimitError";
}
/** 500 and above */
export class InternalServerError extends APIStatusError {
  override readonly name: string = "InternalServerError";
}

const statusClasses = new Map<number, typeof APIStatusError>([
  [400, BadRequestError],
  [401, AuthenticationError],
  [402, BillingError],
  [403, PermissionDeniedError],
  [404, NotFoundError],
  [409, ConflictError],
  [422, UnprocessableEntityError],
  [429, RateLimitError],
]);

/** Builds the class that belongs to a status, with the message the status deserves. */
export function statusError(status: number, options: APIStatusErrorOptions = {}): APIStatusError {
  const Class = statusClasses.get(status) ?? (status >= 500 ? InternalServerError : APIStatusError);
  return new Class(status, statusMessage(status, options), options);
}

/** Statuses that a later attempt may turn into a success. */
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || (status >= 500 && status <= 599);
}

/** The last attempt of an error, followed by `delayMs` of waiting. */
export function toAttempt(error: APIError, delayMs: number | null): Attempt {
  return {
    status: error instanceof APIStatusError ? error.status : null,
    message: error.message,
    delayMs,
    mayHaveBeenApplied: wasPerhapsApplied(error),
  };
}

/** A clear refusal was not applied; silence, a server's failure and an unreadable success may be. */
function wasPerhapsApplied(error: APIError): boolean {
  if (error instanceof APIStatusError) {
    return error.status === 408 || (error.status >= 500 && error.status !== 503);
  }
  if (error instanceof APIConnectionError) return error.wasSent;
  return error instanceof APIResponseValidationError;
}

/** Whether the server may have acted on a call although it failed, in any of its attempts. */
export function mayHaveBeenApplied(error: unknown): boolean {
  if (!(error instanceof APIError)) return false;
  const attempts = error.attempts.length > 0 ? error.attempts : [toAttempt(error, null)];
  return attempts.some((attempt) => attempt.mayHaveBeenApplied);
}

function statusMessage(status: number, { body, request }: APIStatusErrorOptions): string {
  if (body === null || body === undefined || body === "") return `Error code: ${status}`;
  if (typeof body === "string") return body;
  return `Error code: ${status} - ${wordsOf(status, body, request) ?? JSON.stringify(body)}`;
}

/** The words of servers that put them into `detail`, as a text or as a list of places and complaints. */
function wordsOf(
  status: number,
  body: unknown,
  request: FailedRequest | undefined,
): string | undefined {
  const { detail, ...other } = body as Readonly<Record<string, unknown>>;
  // Some servers write their words elsewhere.
  const words = other["error"] ?? other["error_message"];
  if (detail === undefined && typeof words === "string" && words !== "") return words;
  if (typeof detail === "string" && detail !== "") {
    const isNoRoute = status === 404 && detail === "Not Found" && request;
    return isNoRoute
      ? `the server does not offer ${request.method} ${pathOf(request.url)} (${detail})`
      : detail;
  }
  if (!Array.isArray(detail) || detail.length === 0) return undefined;
  const complaints = detail.map((entry: unknown) => {
    const { loc, msg } = (entry ?? {}) as { readonly loc?: unknown; readonly msg?: unknown };
    if (!Array.isArray(loc) || typeof msg !== "string") return JSON.stringify(entry);
    return `${loc.filter((part) => part !== "body").join(".")}: ${msg}`;
  });
  return complaints.join("; ");
}

function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : url;
}
