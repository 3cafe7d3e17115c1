import { APIError, APIStatusError } from "../errors/api-error.js";
import { isUserError } from "../errors/tinker-error.js";
import type { Severity } from "../types/telemetry.js";
import { redact, redactText } from "./redact.js";

/** The part of an event that depends on the error. */
export type ExceptionEvent =
  | {
      readonly event: "UNHANDLED_EXCEPTION";
      readonly severity: Severity;
      readonly errorMessage: string;
      readonly errorType: string;
      readonly traceback: string | null;
    }
  | {
      readonly event: "GENERIC_EVENT";
      readonly severity: Severity;
      readonly eventName: string;
      readonly eventData: Record<string, unknown>;
    };

/** What is reported about an error: mistakes of the caller are told apart from failures. */
export function describeException(error: unknown): ExceptionEvent {
  const fault = userFault(error);
  if (fault) {
    return {
      event: "GENERIC_EVENT",
      severity: "WARNING",
      eventName: "user_error",
      eventData: redact({
        error_type: fault.name,
        ...(fault.message ? { message: fault.message } : {}),
        ...(fault instanceof APIStatusError ? { status_code: fault.status } : {}),
        ...(fault instanceof APIError && fault.body !== null ? { body: fault.body } : {}),
      }) as Record<string, unknown>,
    };
  }
  const isError = error instanceof Error;
  return {
    event: "UNHANDLED_EXCEPTION",
    severity: "ERROR",
    errorMessage: redactText(isError ? error.message : String(error)),
    errorType: isError ? error.name : typeof error,
    traceback: isError && error.stack ? redactText(error.stack) : null,
  };
}

/** The link of the chain of causes that blames the user. */
function userFault(error: unknown): Error | undefined {
  if (!isUserError(error)) return undefined;
  let fault = error as Error;
  while (!("blamesUser" in fault && fault.blamesUser === true)) fault = fault.cause as Error;
  return fault;
}
