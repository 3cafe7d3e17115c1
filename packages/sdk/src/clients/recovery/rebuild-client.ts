import { CancelledError } from "../../errors/cancelled-error.js";
import { TinkerError } from "../../errors/tinker-error.js";
import { retry } from "../../runtime/retry.js";
import type { ServiceClient } from "../service-client.js";
import type { TrainingClient } from "../training-client.js";
import { isLostRun } from "./is-lost-run.js";
import type { RecoveryOptions } from "./recover-training-client.js";
import { completePolicy, type RecoveredTraining } from "./recovery-policy.js";

/** A client in place of one that was lost; without checkpoints of the run it begins at `fallbackPath`. */
export async function rebuildClient(
  service: ServiceClient,
  trainingRunId: string,
  options: RecoveryOptions,
  fallbackPath?: string,
): Promise<RecoveredTraining> {
  const policy = completePolicy(options);
  const { signal } = options;
  const attempt = async (index: number): Promise<RecoveredTraining> => {
    const checkpointPath =
      policy.checkpoint === "latest"
        ? await latestCheckpoint(service, trainingRunId, fallbackPath, signal)
        : policy.checkpoint;
    policy.onAttempt?.(index + 1, checkpointPath);
    const client = policy.withOptimizer
      ? await service.createTrainingClientFromStateWithOptimizer(checkpointPath, { signal })
      : await service.createTrainingClientFromState(checkpointPath, { signal });
    const recovered = { client, checkpointPath };
    policy.onRecovered?.(recovered);
    return recovered;
  };
  return retry(
    attempt,
    {
      shouldRetry: (_, failures) => failures + 1 < policy.maxAttempts,
      delayFor: (_, failures) =>
        Math.min(policy.backoffBaseMs * 2 ** failures, policy.backoffMaxMs),
      onFailure: (error, delayMs) => policy.onFailure?.(error, delayMs),
    },
    { clock: service.runtime.clock, signal },
  );
}

/** Runs `work` until it ends by itself, each time with the client that took the place of the lost one. */
export async function workThroughLosses<T>(
  service: ServiceClient,
  client: TrainingClient,
  work: (client: TrainingClient, recovered: RecoveredTraining | null) => Promise<T>,
  options: RecoveryOptions,
): Promise<T> {
  const { maxAttempts } = completePolicy(options);
  let current = client;
  let recovered: RecoveredTraining | null = null;
  for (let losses = 0; ; losses++) {
    try {
      return await work(current, recovered);
    } catch (error) {
      const mayRecover = losses < maxAttempts && options.signal?.aborted !== true;
      const isLost = isLostRun(error) || (await isCorrupted(service, current.modelId, error));
      if (!mayRecover || !isLost) throw error;
      const fallbackPath: string | undefined = recovered?.checkpointPath;
      recovered = await rebuildClient(service, current.modelId, options, fallbackPath);
      current = recovered.client;
    }
  }
}

/** Asks the server about the run when an error of its own does not tell. */
async function isCorrupted(
  service: ServiceClient,
  trainingRunId: string,
  error: unknown,
): Promise<boolean> {
  if (!(error instanceof TinkerError) || error instanceof CancelledError) return false;
  try {
    return (await service.createRestClient().getTrainingRun(trainingRunId)).corrupted;
  } catch {
    return false;
  }
}

/** The newest checkpoint of the run; a recovered run that has none yet goes back to where it began. */
async function latestCheckpoint(
  service: ServiceClient,
  trainingRunId: string,
  fallbackPath: string | undefined,
  signal: AbortSignal | undefined,
): Promise<string> {
  const rest = service.createRestClient();
  const { checkpoints } = await rest.listCheckpoints(trainingRunId, { signal });
  const [latest] = checkpoints
    .filter(({ checkpointType }) => checkpointType === "training")
    .toSorted((a, b) => b.time.getTime() - a.time.getTime());
  const path = latest?.tinkerPath ?? fallbackPath;
  if (path !== undefined) return path;
  throw new TinkerError(
    `Run ${trainingRunId} has no training checkpoint to recover from; call saveState now and then.`,
    { code: "no_checkpoint" },
  );
}
