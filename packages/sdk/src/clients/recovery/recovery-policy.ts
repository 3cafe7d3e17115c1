import { ArgumentError } from "../../errors/argument-error.js";
import type { TrainingClient } from "../training-client.js";
import { checkTinkerPath } from "../training/checkpoint-arguments.js";

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
  /** Hears of every attempt before it is made. */
  readonly onAttempt?: ((attempt: number, checkpointPath: string) => void) | undefined;
  /** Hears of every attempt that failed; `delayMs` is null after the last. */
  readonly onFailure?: ((error: unknown, delayMs: number | null) => void) | undefined;
  /** Hears of success. */
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
