import { createHash } from "node:crypto";
import { ArgumentError } from "tinker-ts";
import type { Line, RunLog } from "tinker-ts/run-log";

/** Settings that may differ when a run is resumed: they change no weights, or only how long the run is. */
const freeSettings = new Set([
  "log_path",
  "recipe_name",
  "data",
  "eval_data",
  "max_steps",
  "num_epochs",
  "eval_every",
  "infrequent_eval_every",
  "early_stop",
  "save_every",
  "save_every_tokens",
  "save_every_seconds",
  "ttl_seconds",
  "rolling_save_every",
  "rolling_ttl_seconds",
  "async_periodic_saves",
  "submit_ahead",
  "num_groups_to_log",
  "compute_post_kl",
  "max_failed_steps",
]);

/** A folder holds a run with other settings or other data. */
export class RunDiffersError extends ArgumentError {
  override readonly name = "RunDiffersError";
  /** What differs, one entry per setting. */
  readonly differences: readonly string[];

  constructor(folder: string, differences: readonly string[]) {
    super(
      "folder",
      `${folder} holds a run with other settings: ${differences.join("; ")}. Choose another folder, or pass ` +
        `ifExists: "new" to use a numbered folder beside it, or "delete" to replace it`,
    );
    this.differences = differences;
  }
}

/** Refuses to resume a run with other settings or data: its result would belong to neither. */
export function checkSameSettings(run: RunLog, config: Line): void {
  const { config: before, checkpoints } = run.previous;
  if (!before || checkpoints.length === 0) return;
  const differences = Object.keys(config).flatMap((key) => {
    // A setting that an older version did not record cannot be compared.
    if (freeSettings.has(key) || before[key] === undefined) return [];
    const [was, is] = [before[key], config[key]].map((value) => JSON.stringify(value ?? null));
    if (was === is) return [];
    return key === "data_hash" ? ["data differs"] : [`${key} was ${was}, is ${is}`];
  });
  if (differences.length > 0) throw new RunDiffersError(run.folder, differences);
}

/** Settings as `config.json` keeps them: one without a value is null, so that a later value counts as a difference. */
export function withNulls(config: Line): Line {
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, value ?? null]));
}

/** A hash of rows by their content: the same for the same rows in the same order, wherever they come from. */
export function contentHash(rows: Iterable<unknown>): string {
  const hash = createHash("sha256");
  for (const row of rows) {
    // Where a row was read is not content.
    const content = typeof row === "object" ? { ...row, place: undefined } : row;
    hash.update(JSON.stringify(content, bytesAsText)).update("\n");
  }
  return hash.digest("hex").slice(0, 32);
}

function bytesAsText(_key: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
}
