import { randomUUID } from "node:crypto";
import { ApiError } from "../errors/api-error.js";
import { jsonResponse } from "../http/answers.js";

/** An error that names its field. */
export class OpenAiError extends ApiError {
  /** Path of the field, such as `messages[2].content`. */
  readonly param: string | null;

  constructor(
    status: number,
    message: string,
    options: { readonly param?: string; readonly code?: string } = {},
  ) {
    super(status, message, options.code === undefined ? {} : { code: options.code });
    this.param = options.param ?? null;
  }
}

/** 400: the field and the problem. */
export function invalid(param: string, problem: string, code = "invalid_value"): OpenAiError {
  return new OpenAiError(400, `${param}: ${problem}`, { param, code });
}

/** 400: a field that would change the meaning of the answer and is not supported. */
export function unsupported(param: string, problem: string): OpenAiError {
  return invalid(param, problem, "unsupported_parameter");
}

/** 404: no such model, or not visible to this caller. */
export function modelNotFound(message: string): OpenAiError {
  return new OpenAiError(404, message, { param: "model", code: "model_not_found" });
}

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

const codes: Readonly<Record<number, string | null>> = {
  400: null,
  401: "invalid_api_key",
  403: null,
  413: "request_too_large",
  415: "unsupported_media_type",
  429: "rate_limit_exceeded",
  500: "internal",
  503: "unavailable",
};

/** An error in the format of OpenAI's API. */
export function errorBody(error: ApiError): {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
} {
  const { status, message } = error;
  const type = types[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
  const isOwn = error instanceof OpenAiError;
  const code = isOwn ? error.code : (codes[status] ?? null);
  return { error: { message, type, param: isOwn ? error.param : null, code } };
}

/** The answer for an error. */
export function errorResponse(error: ApiError): Response {
  return jsonResponse(errorBody(error), error.status, {
    "x-request-id": randomUUID(),
    ...error.headers,
  });
}
