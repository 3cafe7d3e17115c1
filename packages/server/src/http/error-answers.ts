import { randomBytes } from "node:crypto";
import { ApiError, unavailable } from "../errors/api-error.js";
import { isStorageFailure } from "../errors/storage-failure.js";
import type { Logger } from "../log/logger.js";
import { refusal, refusalResponse } from "./answers.js";

/** How an error is told. */
export type TellError = (error: ApiError) => Response;

/** Turns what a handler throws into an answer; unexpected errors are logged in full and told without detail. */
export async function answerErrors(
  logger: Logger,
  answer: () => Promise<Response>,
  tell: TellError = refusalResponse,
): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    return tell(tellable(error, logger));
  }
}

/** What a client gets to see of anything that was thrown. */
export function tellable(error: unknown, logger: Logger): ApiError {
  const known = refusal(error);
  if (known) return known;
  if (isStorageFailure(error)) {
    logger.error("cannot write to the data directory", { error: error.message });
    return unavailable("the server cannot write to its disk at the moment");
  }
  const reference = randomBytes(4).toString("hex");
  logger.error("unexpected error", {
    reference,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  const text = `something went wrong in the server; its log has the details under ${reference}`;
  return new ApiError(500, text, { code: "internal" });
}
