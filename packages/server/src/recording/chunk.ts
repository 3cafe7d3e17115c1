import type { ChunkRow, Columns } from "../store/points-table.js";
import { bounded } from "./smoothing.js";

/** Points of a full chunk. */
export const chunkLength = 1024;

/** What is known of points without looking at them again. */
export function summarize(number: number, { x, value }: Columns): ChunkRow {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  let total = 0;
  let finite = 0;
  let nan = 0;
  let plus = 0;
  let minus = 0;
  for (const one of value) {
    if (Number.isFinite(one)) {
      finite++;
      total += one;
      if (one < least) least = one;
      if (one > most) most = one;
    } else if (one > 0) plus++;
    else if (one < 0) minus++;
    else nan++;
  }
  return {
    number,
    count: x.length,
    firstX: x[0] ?? 0,
    lastX: x.at(-1) ?? 0,
    least: finite > 0 ? least : null,
    most: finite > 0 ? most : null,
    total: bounded(total),
    finite,
    nan,
    plus,
    minus,
  };
}
