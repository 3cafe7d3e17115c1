import {
  APIStatusError,
  ArgumentError,
  isUserError,
  type ServiceClient,
  type TrainingClient,
  type UserMetadata,
} from "tinker-ts";
import type { CheckpointRow, RunLog } from "tinker-ts/run-log";

/** The model to train, and the weights to start from. */
export interface OpenTrainingOptions {
  readonly service: ServiceClient;
  readonly run: RunLog;
  readonly model: string;
  readonly rank: number;
  /** Random seed for the initial weights of the adapter. */
  readonly seed?: number | undefined;
  /** Weights to start from; a checkpoint of the run itself takes precedence. */
  readonly loadCheckpointPath?: string | undefined;
  readonly userMetadata?: UserMetadata | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A training client, and the checkpoint it continues from. */
export interface OpenedTraining {
  readonly training: TrainingClient;
  /** Undefined for a new run. */
  readonly row: CheckpointRow | undefined;
}

/**
 * Resumes a run from its last checkpoint that still exists, with its optimizer state. A new run starts from given
 * weights with a new optimizer, or from a new adapter.
 */
export async function openTraining(options: OpenTrainingOptions): Promise<OpenedTraining> {
  const opened = await openOrCreate(options);
  options.run.watch(opened.training);
  return opened;
}

async function openOrCreate(options: OpenTrainingOptions): Promise<OpenedTraining> {
  const { service, run, model, rank, seed, loadCheckpointPath, userMetadata, signal } = options;
  const common = { userMetadata, signal };
  const rows = run.previous.checkpoints.filter(({ statePath }) => statePath !== undefined);
  for (const row of rows.toReversed()) {
    try {
      const training = await service.createTrainingClientFromStateWithOptimizer(
        row.statePath!,
        common,
      );
      return { training, row };
    } catch (error) {
      if (!isGone(error)) throw error;
      run.text(
        `checkpoint ${row.name} (${row.statePath}) no longer exists; trying an earlier one`,
        "warning",
      );
    }
  }
  if (rows.length > 0) {
    throw new ArgumentError(
      "folder",
      `none of the run's checkpoints in ${run.folder} is on this server; ` +
        "use the server it ran on, or another folder for a new run",
    );
  }
  if (loadCheckpointPath !== undefined) {
    const training = await service.createTrainingClientFromState(loadCheckpointPath, common);
    return { training, row: undefined };
  }
  const training = await service.createLoraTrainingClient({
    baseModel: model,
    rank,
    seed,
    ...common,
  });
  return { training, row: undefined };
}

/** True for a checkpoint that expired or was deleted; other errors, such as a lost connection, must not lose steps. */
function isGone(error: unknown): boolean {
  const isMissing = error instanceof APIStatusError && [404, 410].includes(error.status);
  return (
    isMissing || (isUserError(error) && /not found|no such|expired|deleted/i.test(String(error)))
  );
}
