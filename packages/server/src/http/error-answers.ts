import { randomBytes } from "node:crypto";
import { unavailable } from "../errors/api-error.js";
import { isStorageFailure } from "../errors/storage-failure.js";
import type { Logger } from "../log/logger.js";
import { jsonResponse, refusal, refusalResponse } from "./answers.js";

/** Turns what a handler throws into an answer; unexpected errors are logged in full and told without detail. */
export async function answerErrors(
  logger: Logger,
  answer: () => Promise<Response>,
): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    const known = refusal(error);
    if (known) return refusalResponse(known);
    if (isStorageFailure(error)) {
      logger.error("cannot write to the data directory", { error: error.message });
      return refusalResponse(unavailable("the server cannot write to its disk at the moment"));
    }
    const reference = randomBytes(4).toString("hex");
    logger.error("unexpected error", {
      reference,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    const text = `something went wrong in the server; its log has the details under ${reference}`;
    return jsonResponse({ error: text, code: "internal" }, 500);
  }
}
