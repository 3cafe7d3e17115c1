import { APIStatusError } from "../../errors/api-error.js";
import { RequestExpiredError, RequestFailedError } from "../../errors/request-failed-error.js";
import { TrainingOrderError } from "../../errors/tinker-error.js";
import type { OperationOptions } from "../../futures/operation.js";
import type { ServiceClient } from "../service-client.js";
import type { TrainingClient } from "../training-client.js";
import type { RecoveredTraining, RecoveryPolicy } from "./rebuild-client.js";

/** How a recovery is made. */
export interface RecoveryOptions extends RecoveryPolicy, Pick<OperationOptions, "signal"> {}

/** Builds a training client in place of one that was lost, from a checkpoint of its run. */
export async function recoverTrainingClient(
  service: ServiceClient,
  trainingRunId: string,
  options: RecoveryOptions = {},
): Promise<RecoveredTraining> {
  const { rebuildClient } = await import("./rebuild-client.js");
  return rebuildClient(service, trainingRunId, options);
}

/**
 * Runs `work` with a training client and, whenever the server loses or corrupts the run, again with a
 * recovered one; `recovered` has the step that `work` goes on from. Other errors pass through.
 */
export async function trainWithRecovery<T>(
  service: ServiceClient,
  client: TrainingClient,
  work: (client: TrainingClient, recovered: RecoveredTraining | null) => Promise<T>,
  options: RecoveryOptions = {},
): Promise<T> {
  const { workThroughLosses } = await import("./rebuild-client.js");
  return workThroughLosses(service, client, work, options);
}

/** Requests that name nothing but the model or what was accepted for it. */
const pathsOfRuns =
  /\/api\/v1\/(?:forward|forward_backward|optim_step|save_weights|save_weights_for_sampler|get_info|retrieve_future)$/;

/**
 * True if an error may mean that the server has lost the run, or that its state is unknown:
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
