import type { RestClient, TrainingClient } from "tinker-ts";
import type { CheckpointRow, Line, RunLog } from "tinker-ts/run-log";

/** Options of checkpoints; 0 means never. */
export interface CheckpointOptions {
  /** Steps between checkpoints. @default 20 */
  readonly saveEvery?: number | undefined;
  /** Trained positions between checkpoints. @default 0 */
  readonly saveEveryTokens?: number | undefined;
  /** Seconds between checkpoints. @default 0 */
  readonly saveEverySeconds?: number | undefined;
  /** Seconds until a periodic checkpoint expires; null keeps it. The final one is always kept. @default 604800 */
  readonly ttlSeconds?: number | null | undefined;
  /** Steps between rolling checkpoints, which hold the training state only; each replaces the previous one. @default 0 */
  readonly rollingSaveEvery?: number | undefined;
  /** Seconds until a rolling checkpoint expires. @default 7200 */
  readonly rollingTtlSeconds?: number | undefined;
  /** Save periodic checkpoints one at a time in the background; a failed one is a warning. @default false */
  readonly asyncPeriodicSaves?: boolean | undefined;
}

/** The position of a run: its next step, and the data of that step. */
export interface RunPosition {
  /** Steps done. */
  readonly step: number;
  /** The next batch to run. */
  readonly batch: number;
  /** The epoch of that batch, where the loop has epochs. */
  readonly epoch?: number | undefined;
}

/** Everything that the keeper uses. */
export interface CheckpointKeeperParts {
  readonly training: TrainingClient;
  /** Deletes rolling checkpoints. */
  readonly rest: RestClient;
  readonly run: RunLog;
  readonly options: CheckpointOptions;
  /** The row that the run continues from, and its next step. */
  readonly resumedFrom?: { readonly row: CheckpointRow; readonly step: number } | undefined;
  /** A monotonic clock in milliseconds. @default performance.now */
  readonly now?: (() => number) | undefined;
}

type BackgroundKind = "periodic" | "rolling";
type Kind = BackgroundKind | "final";

/**
 * Saves a run during training.
 *
 * - A save is submitted before the step that it is named after. Requests of a model run in order, so it holds the state
 *   after the earlier steps, and the loop need not wait for it.
 * - Its row is written when the save is done and those steps are logged. A run resumes from rows only.
 * - A step is saved once: a periodic checkpoint replaces a rolling one.
 * - A failed periodic save fails the run; other failed saves are warnings.
 */
export class CheckpointKeeper {
  readonly #parts: CheckpointKeeperParts;
  readonly #now: () => number;
  readonly #underWay = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;
  #lastRow: CheckpointRow | undefined;
  #savedStep: number | undefined;
  #periodicTokens: number;
  #periodicAt: number;
  #isRollingUnderWay = false;
  #isPeriodicUnderWay = false;
  #rollingPath: string | undefined;

  constructor(parts: CheckpointKeeperParts) {
    const { resumedFrom, now = () => performance.now() } = parts;
    this.#parts = parts;
    this.#now = now;
    this.#periodicAt = now();
    this.#lastRow = resumedFrom?.row;
    this.#savedStep = resumedFrom?.step;
    const { extra, statePath } = resumedFrom?.row ?? {};
    const tokens = extra?.["tokens_at_periodic"];
    this.#periodicTokens = typeof tokens === "number" ? tokens : 0;
    if (extra?.["rolling"] === true) this.#rollingPath = statePath;
  }

  /** The step before which the run was saved last. */
  get savedStep(): number | undefined {
    return this.#savedStep;
  }

  /**
   * Submits a save when one is due before a step. `logged` resolves when the earlier steps are in the log; `tokens` is
   * the number of positions that they trained; `extra` goes into the row.
   */
  beforeStep(
    position: RunPosition,
    { tokens, logged, extra }: { tokens: number; logged: Promise<unknown>; extra: Line },
  ): void {
    if (this.#failure) throw this.#failure.error;
    const kind = this.#dueBefore(position.step, tokens);
    if (kind === undefined || position.step === this.#savedStep) return;
    const { asyncPeriodicSaves = false } = this.#parts.options;
    if (kind === "periodic" && asyncPeriodicSaves && this.#isPeriodicUnderWay) return;
    this.#start(kind, position, tokens, logged, extra);
  }

  /** Saves the current position, unless it is saved, and returns the row to resume from. */
  async saveNow(position: RunPosition, tokens: number, extra: Line): Promise<CheckpointRow> {
    await this.#settle();
    if (position.step === this.#savedStep && this.#lastRow) return this.#lastRow;
    this.#savedStep = position.step;
    return this.#save("periodic", position, tokens, Promise.resolve(), extra);
  }

  /** Saves the end of the run, waits for saves in flight, and removes the last rolling checkpoint. */
  async finish(position: RunPosition, tokens: number, extra: Line): Promise<CheckpointRow> {
    await this.#settle();
    const row = await this.#save("final", position, tokens, Promise.resolve(), extra);
    await this.removeRolling();
    return row;
  }

  /** Removes the last rolling checkpoint, if there is one. */
  async removeRolling(): Promise<void> {
    await Promise.all(this.#underWay);
    await this.#replaceRolling(undefined);
  }

  #dueBefore(step: number, tokens: number): BackgroundKind | undefined {
    const { saveEvery = 20, saveEveryTokens = 0, saveEverySeconds = 0 } = this.#parts.options;
    const { rollingSaveEvery = 0 } = this.#parts.options;
    if (step === 0) return undefined;
    const seconds = (this.#now() - this.#periodicAt) / 1000;
    const isPeriodic =
      (saveEvery > 0 && step % saveEvery === 0) ||
      (saveEveryTokens > 0 && tokens - this.#periodicTokens >= saveEveryTokens) ||
      (saveEverySeconds > 0 && seconds >= saveEverySeconds);
    if (isPeriodic) return "periodic";
    const isRolling = rollingSaveEvery > 0 && step % rollingSaveEvery === 0;
    return isRolling && !this.#isRollingUnderWay ? "rolling" : undefined;
  }

  #start(
    kind: BackgroundKind,
    position: RunPosition,
    tokens: number,
    logged: Promise<unknown>,
    extra: Line,
  ): void {
    this.#savedStep = position.step;
    const mark = (isUnderWay: boolean): void => {
      if (kind === "rolling") this.#isRollingUnderWay = isUnderWay;
      else this.#isPeriodicUnderWay = isUnderWay;
    };
    mark(true);
    const isOptional = kind === "rolling" || this.#parts.options.asyncPeriodicSaves === true;
    const work = this.#save(kind, position, tokens, logged, extra)
      .then(
        () => undefined,
        (error: unknown) => {
          if (isOptional) this.#warn(`checkpoint ${nameOf(position.step)} failed`, error);
          else this.#failure ??= { error };
        },
      )
      .finally(() => {
        mark(false);
        this.#underWay.delete(work);
      });
    this.#underWay.add(work);
  }

  /** Submits both requests before the first await: that fixes their place in the order. */
  async #save(
    kind: Kind,
    position: RunPosition,
    tokens: number,
    logged: Promise<unknown>,
    extra: Line,
  ): Promise<CheckpointRow> {
    const { training, run, options } = this.#parts;
    const { ttlSeconds = 604_800, rollingTtlSeconds = 7200 } = options;
    const expiry = { periodic: ttlSeconds, rolling: rollingTtlSeconds, final: null }[kind];
    const name = kind === "final" ? "final" : nameOf(position.step);
    if (kind === "periodic") {
      this.#periodicTokens = tokens;
      this.#periodicAt = this.#now();
    }
    const state = training.saveState(name, { ttlSeconds: expiry });
    const sampler =
      kind === "rolling" ? undefined : training.saveWeightsForSampler(name, { ttlSeconds: expiry });
    const [{ path: statePath }, samplerWeights] = await Promise.all([state, sampler]);
    await logged;
    const row: CheckpointRow = {
      name,
      batch: position.batch,
      epoch: position.epoch,
      ...(kind === "final" && { final: true }),
      statePath,
      samplerPath: samplerWeights?.path,
      extra: {
        ...extra,
        elapsed_tokens: tokens,
        tokens_at_periodic: this.#periodicTokens,
        ...(kind === "rolling" && { rolling: true }),
      },
    };
    await run.checkpoint(row);
    this.#lastRow = row;
    if (kind === "rolling") await this.#replaceRolling(statePath);
    return row;
  }

  async #replaceRolling(path: string | undefined): Promise<void> {
    const previous = this.#rollingPath;
    this.#rollingPath = path;
    if (previous === undefined) return;
    await this.#parts.rest
      .deleteCheckpointFromTinkerPath(previous)
      .catch((error: unknown) => this.#warn(`${previous} could not be deleted`, error));
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#underWay);
    if (this.#failure) throw this.#failure.error;
  }

  #warn(what: string, error: unknown): void {
    this.#parts.run.text(`${what}: ${(error as Error).message}`, "warning");
  }
}

function nameOf(step: number): string {
  return String(step).padStart(6, "0");
}
