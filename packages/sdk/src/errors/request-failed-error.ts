import { TinkerError, type BlamesUser, type TinkerErrorOptions } from "./tinker-error.js";

/** Who caused a failed request, by the server's account. */
export type RequestErrorCategory = "unknown" | "server" | "user";

/** The server accepted a request, worked on it, and it ended in failure. */
export class RequestFailedError extends TinkerError implements BlamesUser {
  override readonly name: string = "RequestFailedError";
  /** The server's id of the request. */
  readonly requestId: string;
  /** Who caused it, by the server's account. */
  readonly category: RequestErrorCategory;

  constructor(
    message: string,
    options: TinkerErrorOptions & { requestId: string; category: RequestErrorCategory },
  ) {
    super(message, { ...options, code: "request_failed" });
    this.requestId = options.requestId;
    this.category = options.category;
  }

  /** Whether the server blames the request. */
  get blamesUser(): boolean {
    return this.category === "user";
  }
}

/** The server has dropped the result of a request (HTTP 410); the request may be made again. */
export class RequestExpiredError extends TinkerError {
  override readonly name: string = "RequestExpiredError";
  /** The server's id of the request. */
  readonly requestId: string;

  constructor(requestId: string, options: TinkerErrorOptions = {}) {
    super(
      `The server has dropped the result of request ${requestId} (HTTP 410); make the request again.`,
      { ...options, code: "request_expired" },
    );
    this.requestId = requestId;
  }

  override get isRetryable(): boolean {
    return true;
  }
}

/** A result could not be fetched or read; the cause holds the reason. */
export class ResultError extends TinkerError {
  override readonly name: string = "ResultError";
  /** The server's id of the request. */
  readonly requestId: string;

  constructor(requestId: string, message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "result_unavailable" });
    this.requestId = requestId;
  }
}
