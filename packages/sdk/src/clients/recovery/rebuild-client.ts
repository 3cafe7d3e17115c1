import { ArgumentError } from "../../errors/argument-error.js";
import type { TrainingClient } from "../training-client.js";
import { checkTinkerPath } from "../training/checkpoint-arguments.js";
import { CancelledError, TinkerError } from "../../errors/tinker-error.js";
import { growingPauseMs, retry } from "../../transport/retry.js";
import type { ServiceClient } from "../service-client.js";
import { isLostRun, type RecoveryOptions } from "./recover-training-client.js";

/** A client in place of one that was lost; without checkpoints of the run it begins at `fallbackPath`. */
export async function rebuildClient(
  service: ServiceClient,
  trainingRunId: string,
  options: RecoveryOptions,
  fallbackPath?: string,
): Promise<RecoveredTraining> {
  const policy = completePolicy(options);
  const { signal } = options;
  const pauses = { firstMs: policy.backoffBaseMs, longestMs: policy.backoffMaxMs };
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
      delayFor: (_, failures) => growingPauseMs(pauses, failures),
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

/** Asks the server about the run when the error does not say enough. */
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

/** A training client that took the place of a lost one. */
export interface RecoveredTraining {
  /** The client to go on with. */
  readonly client: TrainingClient;
  /** The checkpoint that it goes on from. */
  readonly checkpointPath: string;
}

/** How a lost run is rebuilt. */
export interface RecoveryPolicy {
  /**
   * The run's latest training checkpoint, or the path of a particular one.
   * @default "latest"
   */
  readonly checkpoint?: string | undefined;
  /**
   * Also restores the optimizer.
   * @default true
   */
  readonly withOptimizer?: boolean | undefined;
  /**
   * How often it is tried.
   * @default 5
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Wait after the first failed attempt; doubles with each further one.
   * @default 1000
   */
  readonly backoffBaseMs?: number | undefined;
  /**
   * Longest wait between two attempts in milliseconds.
   * @default 60000
   */
  readonly backoffMaxMs?: number | undefined;
  /** Called before every attempt. */
  readonly onAttempt?: ((attempt: number, checkpointPath: string) => void) | undefined;
  /** Called after every failed attempt; `delayMs` is null after the last. */
  readonly onFailure?: ((error: unknown, delayMs: number | null) => void) | undefined;
  /** Called after success. */
  readonly onRecovered?: ((recovered: RecoveredTraining) => void) | undefined;
}

type CompleteRecoveryPolicy = RecoveryPolicy &
  Readonly<Record<"maxAttempts" | "backoffBaseMs" | "backoffMaxMs", number>> & {
    readonly checkpoint: string;
    readonly withOptimizer: boolean;
  };

/** Fills defaults in and refuses what cannot be meant. */
export function completePolicy(policy: RecoveryPolicy): CompleteRecoveryPolicy {
  const complete = {
    ...policy,
    checkpoint: policy.checkpoint ?? "latest",
    withOptimizer: policy.withOptimizer ?? true,
    maxAttempts: policy.maxAttempts ?? 5,
    backoffBaseMs: policy.backoffBaseMs ?? 1_000,
    backoffMaxMs: policy.backoffMaxMs ?? 60_000,
  };
  if (complete.checkpoint !== "latest") checkTinkerPath(complete.checkpoint, "checkpoint");
  if (!Number.isInteger(complete.maxAttempts) || complete.maxAttempts < 1) {
    throw new ArgumentError("maxAttempts", "must be a whole number of 1 or more");
  }
  if (!(complete.backoffBaseMs >= 0) || !(complete.backoffMaxMs >= 0)) {
    throw new ArgumentError("backoffBaseMs", "backoffs must be 0 or more");
  }
  return complete;
}
