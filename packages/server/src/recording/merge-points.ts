import type { PointKind, PointRow } from "../store/points-table.js";
import { toNumber } from "./numbers.js";

/** Values at one x of one attempt, put together from all rows that speak of it. */
export class OpenPoint {
  readonly attempt: number;
  readonly x: number;
  at = 0;
  readonly #values = new Map<string, number>();
  readonly #counts = new Map<string, number>();

  constructor(attempt: number, x: number) {
    this.attempt = attempt;
    this.x = x;
  }

  /** Takes the values of one more row in. */
  add(kind: PointKind, at: number, values: Readonly<Record<string, unknown>>): void {
    this.at = Math.max(this.at, at);
    for (const [key, given] of Object.entries(values)) {
      const value = toNumber(given);
      if (value === undefined) continue;
      const before = this.#values.get(key);
      const isMerged = before !== undefined && kind !== "log";
      const count = isMerged ? (this.#counts.get(key) ?? 1) : 0;
      this.#values.set(key, isMerged ? merged(key, before, value, count) : value);
      this.#counts.set(key, count + 1);
    }
  }

  /** All values, those that follow from others included. */
  values(): Map<string, number> {
    const all = new Map(this.#values);
    for (const prefix of ["", "forward/"]) {
      const nll = quotient(all, `${prefix}loss:sum`, [
        `${prefix}weights:sum`,
        `${prefix}targets:sum`,
      ]);
      if (nll !== undefined) all.set(`${prefix}nll`, nll);
    }
    const pace = quotient(all, "server/tokens:sum", ["server/compute_seconds:sum"]);
    if (pace !== undefined) all.set("server/tokens_per_second", pace);
    return all;
  }
}

/** Rows put together by attempt and x, in the order in which these came first. */
export function mergeRows(rows: readonly PointRow[]): OpenPoint[] {
  const points = new Map<string, OpenPoint>();
  for (const { attempt, x, at, kind, values } of rows) {
    const name = `${attempt}:${x}`;
    const point = points.get(name) ?? new OpenPoint(attempt, x);
    points.set(name, point);
    point.add(kind, at, values);
  }
  return [...points.values()];
}

/** Passes of one step become one value as the suffix of its name says. */
function merged(key: string, before: number, value: number, count: number): number {
  switch (key.slice(key.lastIndexOf(":") + 1)) {
    case "sum":
      return before + value;
    case "min":
      return Math.min(before, value);
    case "max":
      return Math.max(before, value);
    case "mean":
      return before + (value - before) / (count + 1);
    default:
      return value;
  }
}

function quotient(
  values: ReadonlyMap<string, number>,
  top: string,
  bottoms: readonly string[],
): number | undefined {
  const above = values.get(top);
  const below = bottoms.map((key) => values.get(key)).find((value) => value !== undefined);
  return above === undefined || below === undefined || below === 0 ? undefined : above / below;
}
