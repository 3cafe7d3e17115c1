import { APIResponseValidationError, APITimeoutError } from "../errors/api-error.js";
import { describeRequest, type HttpRequest } from "./message.js";

/** An answer may be as slow as this once it has begun; a drip that goes on for ever is no answer. */
export const slowestAnswerBytesPerMs = 1;

/** An answer that is larger than its route allows; asking again would not make it smaller. */
export function tooLargeError(request: HttpRequest, status: number): APIResponseValidationError {
  const { method, path, maxAnswerBytes } = request;
  return new APIResponseValidationError(
    `The answer of ${method} ${path} is larger than ${maxAnswerBytes} bytes and was not read.`,
    { status, code: "response_too_large", request: describeRequest(request) },
  );
}

/** An answer that does not come, does not go on, or comes too slowly. */
export function silenceError(
  request: HttpRequest,
  what: "no answer" | "no further part of its answer" | "too little of its answer",
  durationMs: number,
  wasSent: boolean,
): APITimeoutError {
  const { method, path } = request;
  return new APITimeoutError(
    `Request timed out: ${method} ${path} got ${what} ${what === "too little of its answer" ? "in" : "for"} ${Math.round(durationMs)} ms.`,
    { request: describeRequest(request), wasSent, hasBegun: what !== "no answer" },
  );
}
