import { ArgumentError, type Datum, type TensorData } from "tinker-ts";

/** Log-probabilities of one datum: `width` candidates at each of `positions` places, row by row. */
export interface DatumLogprobs {
  /** Row-major values, `positions * width` of them. */
  readonly values: Float64Array;
  /** Number of target positions. */
  readonly positions: number;
  /** Candidate tokens per position; 1 when only the chosen token is known. */
  readonly width: number;
}

/** What every term of a loss sees of a batch. */
export interface LossBatch {
  /** The data, as they were given to the pass. */
  readonly data: readonly Datum[];
  /** Log-probabilities of the targets under the model in training, one entry per datum. */
  readonly logprobs: readonly DatumLogprobs[];
  /** 1 where a position counts, one entry per datum and position. */
  readonly masks: readonly Uint8Array[];
  /** How many positions count. */
  readonly positions: number;
}

/**
 * Numbers that belong to the data but must not travel with them (references, pairs, advantages): one
 * list per datum, as long as the datum's log-probabilities.
 */
export type SideData = readonly ArrayLike<number>[];

/**
 * Puts a batch together. Without masks of one's own a position counts when one of its `weights` is not
 * zero, and every position counts in data without weights.
 */
export function lossBatch(
  data: readonly Datum[],
  logprobs: readonly TensorData[],
  masks?: SideData,
): LossBatch {
  if (data.length === 0) throw new ArgumentError("data", "must hold at least one datum");
  const rows = logprobs.map(toDatumLogprobs);
  if (masks) checkSideData("masks", masks, rows, "positions");
  const bits = rows.map((row, index) =>
    masks
      ? Uint8Array.from(masks[index]!, (value) => (value ? 1 : 0))
      : weighted(data[index]!, row),
  );
  const positions = bits.reduce((sum, mask) => sum + mask.reduce((a, b) => a + b, 0), 0);
  return { data, logprobs: rows, masks: bits, positions };
}

/** Refuses side data that do not fit the batch, naming the datum and both lengths. */
export function checkSideData(
  name: string,
  side: SideData,
  logprobs: readonly DatumLogprobs[],
  per: "positions" | "values",
): void {
  if (side.length !== logprobs.length) {
    throw new ArgumentError(
      name,
      `must hold one list per datum (${logprobs.length}), got ${side.length}`,
    );
  }
  for (const [index, row] of logprobs.entries()) {
    const expected = per === "values" ? row.values.length : row.positions;
    const got = side[index]?.length;
    if (got !== expected) {
      throw new ArgumentError(
        `${name}[${index}]`,
        `must have ${expected} entries (${row.positions} positions of ${row.width}), got ${got ?? "none"}`,
      );
    }
  }
}

function toDatumLogprobs(tensor: TensorData): DatumLogprobs {
  const { data, shape } = tensor.toDense();
  const values = Float64Array.from(data, Number);
  const width = shape?.length === 2 ? shape[1]! : 1;
  return { values, positions: width === 0 ? 0 : values.length / width, width };
}

function weighted(datum: Datum, { positions, width }: DatumLogprobs): Uint8Array {
  const weights = datum.lossFnInputs["weights"]?.toDense().data;
  if (!weights) return new Uint8Array(positions).fill(1);
  return Uint8Array.from({ length: positions }, (_, position) => {
    for (let slot = position * width; slot < (position + 1) * width; slot++) {
      if (Number(weights[slot]) !== 0) return 1;
    }
    return 0;
  });
}

/** Indices of a datum's log-probabilities that count. */
export function countedSlots({ logprobs, masks }: LossBatch, datum: number): number[] {
  const { values, width } = logprobs[datum]!;
  const all = Array.from({ length: values.length }, (_, slot) => slot);
  return all.filter((slot) => masks[datum]![Math.floor(slot / width)]);
}
