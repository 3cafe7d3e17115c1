import { ApiError, unavailable } from "../errors/api-error.js";
import { StoppedError } from "../errors/failure.js";
import { tellable } from "../http/error-answers.js";
import type { Logger } from "../log/logger.js";
import { OpenAiError } from "./openai-error.js";

/** The part of an error that a client receives: its own mistakes in full, others with a reference to the log. */
export function toApiError(error: unknown, logger: Logger): ApiError {
  if (error instanceof StoppedError) return unavailable(error.message);
  const isFromEngine =
    error instanceof Error && (error.name === "EngineError" || error.name === "HubError");
  if (isFromEngine && "category" in error && error.category === "user") {
    return new OpenAiError(400, error.message, { code: "invalid_value" });
  }
  return tellable(error, logger);
}
