import { APIStatusError } from "../../errors/api-error.js";
import { RequestExpiredError, RequestFailedError } from "../../errors/request-failed-error.js";
import { TrainingOrderError } from "../../errors/training-order-error.js";

/** Requests that name nothing but the model or what was accepted for it. */
const pathsOfRuns =
  /\/api\/v1\/(?:forward|forward_backward|optim_step|save_weights|save_weights_for_sampler|get_info|retrieve_future)$/;

/**
 * Whether an error may mean that the server has lost the run, or that its state is not known any more:
 * the order was lost, the model or the result is gone, or the server failed at its work. Mistakes of
 * the caller (such as the path of a checkpoint that does not exist), aborts and outages do not mean that.
 */
export function isLostRun(error: unknown): boolean {
  const seen = new Set<unknown>();
  let current = error;
  while (current instanceof Error && !seen.has(current)) {
    seen.add(current);
    if (current instanceof TrainingOrderError || current instanceof RequestExpiredError)
      return true;
    if (current instanceof RequestFailedError) return current.category !== "user";
    if (current instanceof APIStatusError) return isModelGone(current);
    current = current.cause;
  }
  return false;
}

function isModelGone({ status, request }: APIStatusError): boolean {
  if (status !== 404 && status !== 410) return false;
  const [address = ""] = request?.url.split("?") ?? [];
  return pathsOfRuns.test(address);
}
