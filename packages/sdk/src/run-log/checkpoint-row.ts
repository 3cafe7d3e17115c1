import type { Line, LineValue } from "./folder-writer.js";

/** A checkpoint of a run: where training goes on and from which weights. One line of `checkpoints.jsonl`. */
export interface CheckpointRow {
  /** The step as six digits, or `final`. */
  readonly name: string;
  /** The next batch to run: within its epoch where there is an epoch, else since the beginning. */
  readonly batch?: number | undefined;
  /** The epoch of that batch. */
  readonly epoch?: number | undefined;
  /** The run had done all it was asked to. */
  readonly final?: boolean | undefined;
  /** Weights and optimizer: `tinker://RUN/weights/NAME`. */
  readonly statePath?: string | undefined;
  /** Weights for sampling: `tinker://RUN/sampler_weights/NAME`. */
  readonly samplerPath?: string | undefined;
  /** Whatever else the loop has to know to go on, under the names that the file has. */
  readonly extra?: Line | undefined;
}

/** The file's form of a row; what is absent is left out, never null. */
export function toCheckpointLine(row: CheckpointRow): Line {
  const { name, batch, epoch, final, statePath, samplerPath, extra } = row;
  return { name, batch, epoch, final, state_path: statePath, sampler_path: samplerPath, ...extra };
}

/** A row from its line, or undefined when the line names no checkpoint. */
export function readCheckpointLine(line: Line): CheckpointRow | undefined {
  const { name, batch, epoch, final, state_path, sampler_path, ...extra } = line;
  if (typeof name !== "string") return undefined;
  return {
    name,
    batch: numberOf(batch),
    epoch: numberOf(epoch),
    final: typeof final === "boolean" ? final : undefined,
    statePath: textOf(state_path),
    samplerPath: textOf(sampler_path),
    extra,
  };
}

function numberOf(value: LineValue): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function textOf(value: LineValue): string | undefined {
  return typeof value === "string" ? value : undefined;
}
