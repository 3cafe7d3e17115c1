/** What an `ApiError` carries besides status and message. */
export interface ApiErrorOptions {
  /** Stable word for programs. */
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** A refusal that the client gets to see: a status and a message that names the field and the way out. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.status = status;
    this.code = options.code ?? defaultCodes[status] ?? "error";
    this.headers = options.headers ?? {};
  }
}

const defaultCodes: Readonly<Record<number, string>> = {
  400: "bad_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  410: "gone",
  413: "too_large",
  415: "unsupported_media_type",
  429: "too_many_requests",
  503: "unavailable",
};

/** 400: the field and what is wrong with it. */
export function badRequest(field: string, problem: string): ApiError {
  return new ApiError(400, `${field}: ${problem}`);
}

/** 404: missing, or not visible to this caller; the answer is the same for both. */
export function notFound(what: string): ApiError {
  return new ApiError(404, `${what} does not exist or is not yours`);
}

/** 409 that a client must not retry, although clients take 409 for a lock that will go away. */
export function conflict(message: string): ApiError {
  return new ApiError(409, message, { headers: { "x-should-retry": "false" } });
}

/** 410: it was there and has ended. */
export function gone(message: string): ApiError {
  return new ApiError(410, message);
}

/** 429: ask again after a moment. */
export function tooMany(message: string, retryAfterMs: number): ApiError {
  const headers = {
    "retry-after-ms": String(retryAfterMs),
    "retry-after": String(Math.ceil(retryAfterMs / 1000)),
  };
  return new ApiError(429, message, { headers });
}

/** 503: the server is going away. */
export function unavailable(message: string): ApiError {
  return new ApiError(503, message, { headers: { "retry-after": "1" } });
}
