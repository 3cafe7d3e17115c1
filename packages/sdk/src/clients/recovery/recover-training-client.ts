import type { OperationOptions } from "../../futures/operation.js";
import type { ServiceClient } from "../service-client.js";
import type { TrainingClient } from "../training-client.js";
import type { RecoveredTraining, RecoveryPolicy } from "./recovery-policy.js";

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
 * recovered one; `recovered` tells `work` where to go on from. Other errors pass through.
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
