import { APIStatusError } from "../../errors/api-error.js";
import { RequestExpiredError, RequestFailedError } from "../../errors/request-failed-error.js";
import { TrainingOrderError } from "../../errors/training-order-error.js";

/**
 * Whether an error may mean that the server has lost the run, or that its state is not known any more:
 * the order was lost, the model or the result is gone, or the server failed at its work. Mistakes of
 * the caller, aborts and outages do not mean that.
 */
export function isLostRun(error: unknown): boolean {
  const seen = new Set<unknown>();
  let current = error;
  while (current instanceof Error && !seen.has(current)) {
    seen.add(current);
    if (current instanceof TrainingOrderError || current instanceof RequestExpiredError)
      return true;
    if (current instanceof RequestFailedError) return current.category !== "user";
    if (current instanceof APIStatusError) return current.status === 404 || current.status === 410;
    current = current.cause;
  }
  return false;
}
