import { nextUp } from "../store/series-batch.js";
import type { Point, SeriesTable } from "../store/series-table.js";
import type { RunSeries } from "./run-series.js";

const linesAtATime = 256;
const pointsAtATime = 1000;

/** All points of some metrics as CSV: a line per step and attempt, a column per metric; some lines at a time. */
export function* seriesCsv(
  table: SeriesTable,
  series: RunSeries,
  keys: readonly string[],
): Generator<string> {
  yield `${["attempt", "step", "time", ...keys].map(csvCell).join(",")}\n`;
  for (const { attempt } of series.starts) {
    const cursors = keys.map((key) => {
      const match = series.attempts(key).find((one) => one.attempt === attempt);
      return new Cursor(table, match?.seriesId);
    });
    let lines: string[] = [];
    for (;;) {
      const step = cursors.reduce(
        (least, { point }) => Math.min(least, point?.x ?? noStep),
        noStep,
      );
      if (step === noStep) break;
      const here = cursors.map((cursor) => (cursor.point?.x === step ? cursor : null));
      const { at } = here.find((cursor) => cursor !== null)!.point!;
      const cells = here.map((cursor) => cursor?.point?.value ?? "");
      lines.push(`${attempt},${step},${timeCell(at)},${cells.join(",")}\n`);
      for (const cursor of here) cursor?.advance();
      if (lines.length < linesAtATime) continue;
      yield lines.join("");
      lines = [];
    }
    yield lines.join("");
  }
}

const noStep = Number.POSITIVE_INFINITY;

/** A place in the points of a series, which are read some at a time. */
class Cursor {
  readonly #table: SeriesTable;
  readonly #seriesId: number | undefined;
  #points: readonly Point[] = [];
  #place = 0;

  constructor(table: SeriesTable, seriesId: number | undefined) {
    this.#table = table;
    this.#seriesId = seriesId;
    this.#read(Number.NEGATIVE_INFINITY);
  }

  /** The point here; undefined behind the last one. */
  get point(): Point | undefined {
    return this.#points[this.#place];
  }

  advance(): void {
    const { x } = this.#points[this.#place++]!;
    if (this.#place === this.#points.length) this.#read(nextUp(x));
  }

  #read(from: number): void {
    this.#place = 0;
    if (this.#seriesId === undefined) return;
    this.#points = this.#table.points(this.#seriesId, from, pointsAtATime);
  }
}

/** Folders do not always say when. */
function timeCell(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/** A cell of text that no spreadsheet takes for a formula. */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
