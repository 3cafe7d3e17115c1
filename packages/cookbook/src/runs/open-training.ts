import {
  APIStatusError,
  ArgumentError,
  isUserError,
  type ServiceClient,
  type TrainingClient,
  type UserMetadata,
} from "tinker-ts";
import type { CheckpointRow, Line, RunLog } from "tinker-ts/run-log";

/** Which model is trained, and from where. */
export interface OpenTrainingOptions {
  readonly service: ServiceClient;
  readonly run: RunLog;
  readonly model: string;
  readonly rank: number;
  /** Makes the adapter's first weights repeatable. */
  readonly seed?: number | undefined;
  /** Weights to begin with; a checkpoint of the run itself wins. */
  readonly loadCheckpointPath?: string | undefined;
  readonly userMetadata?: UserMetadata | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A client that trains, and the checkpoint it goes on from. */
export interface OpenedTraining {
  readonly training: TrainingClient;
  /** Undefined when training begins. */
  readonly row: CheckpointRow | undefined;
}

/**
 * Goes on with a run from its last checkpoint that is still there, with the optimizer as it was; or begins
 * from given weights with a fresh optimizer; or begins anew.
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
        `checkpoint ${row.name} (${row.statePath}) is gone; looking for an earlier one`,
        "warning",
      );
    }
  }
  if (rows.length > 0) {
    throw new ArgumentError(
      "folder",
      `none of the run's checkpoints in ${run.folder} is on this server; ` +
        "choose the server it ran on, or another folder to begin anew",
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

/** Refuses settings that a run cannot change on its way, under the names that `config.json` has. */
export function checkSameRun(run: RunLog, wanted: Readonly<Record<string, string | number>>): void {
  for (const { key, was, is } of changesOf(run, wanted)) {
    throw new ArgumentError(
      "folder",
      `${run.folder} holds a run with ${key} ${was}, not ${is}; ` +
        "use its settings to go on with it, or another folder",
    );
  }
}

/** Tells of all other settings that differ, because what follows is not what it would have been. */
export function warnOfChanges(run: RunLog, config: Line, except: readonly string[]): void {
  for (const { key, was, is } of changesOf(run, config)) {
    if (except.includes(key)) continue;
    run.text(`${key} was ${was} when the run was begun and is ${is} now`, "warning");
  }
}

function changesOf(run: RunLog, config: Line): { key: string; was: string; is: string }[] {
  const { config: before, checkpoints } = run.previous;
  if (!before || checkpoints.length === 0) return [];
  return Object.keys(config).flatMap((key) => {
    const [was, is] = [before[key], config[key]].map((value) => JSON.stringify(value ?? null));
    return was === is || was === undefined || is === undefined ? [] : [{ key, was, is }];
  });
}

/** A checkpoint that expired or was deleted; anything else, such as a server that is away, is no reason to go back. */
function isGone(error: unknown): boolean {
  const isMissing = error instanceof APIStatusError && [404, 410].includes(error.status);
  return (
    isMissing || (isUserError(error) && /not found|no such|expired|deleted/i.test(String(error)))
  );
}
