import { randomBytes } from "node:crypto";
import { ApiError, unavailable } from "../errors/api-error.js";
import { isStorageFailure } from "../errors/storage-failure.js";
import { withoutDataDir } from "../errors/without-data-dir.js";
import type { Logger } from "../log/logger.js";
import { refusal, refusalResponse } from "./answers.js";

/** How an error is told. */
export type TellError = (error: ApiError) => Response;

/** What errors are answered with. */
export interface ErrorContext {
  readonly logger: Logger;
  /** Its signal is aborted when the client goes away; one that nobody asks for is not made. */
  readonly request: Pick<Request, "signal">;
  /** Where it lies is not told. */
  readonly dataDir: string;
}

/** Turns what a handler throws into an answer; unexpected errors are logged in full and told without detail. */
export async function answerErrors(
  { logger, request, dataDir }: ErrorContext,
  answer: () => Promise<Response>,
  tell: TellError = refusalResponse,
): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    if (request.signal.aborted) {
      // Nobody reads this answer.
      logger.info("a client went away in the middle of a request");
      return tell(new ApiError(400, "the client went away", { code: "aborted" }));
    }
    return tell(withoutFolder(tellable(error, logger), dataDir));
  }
}

function withoutFolder(error: ApiError, dataDir: string): ApiError {
  const message = withoutDataDir(error.message, dataDir);
  const { status, code, headers } = error;
  return message === error.message ? error : new ApiError(status, message, { code, headers });
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
