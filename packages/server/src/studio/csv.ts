import type { Columns } from "../store/points-table.js";
import type { Block, RunSeries } from "./run-series.js";

const linesAtATime = 256;

/** All points of some metrics as CSV: a line per step and attempt, a column per metric; some lines at a time. */
export function* seriesCsv(series: RunSeries, keys: readonly string[]): Generator<string> {
  yield `${["attempt", "step", "time", ...keys].map(csvCell).join(",")}\n`;
  for (const { attempt } of series.starts) {
    const cursors = keys.map((key) => new Cursor(series, key, attempt));
    let lines: string[] = [];
    for (;;) {
      const step = cursors.reduce((least, cursor) => Math.min(least, cursor.step), noStep);
      if (step === noStep) break;
      const here = cursors.map((cursor) => (cursor.step === step ? cursor : null));
      const at = here.find((cursor) => cursor !== null)!.at;
      const cells = here.map((cursor) => (cursor === null ? "" : cursor.value));
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

/** A place in the points of a metric; a chunk is read when the place is in it. */
class Cursor {
  readonly #blocks: Block[];
  #columns: Columns | undefined;
  #place = 0;

  constructor(series: RunSeries, key: string, attempt: number) {
    const found = series.attempts(key).find((one) => one.attempt === attempt);
    this.#blocks = [...(found?.blocks() ?? [])].toReversed();
    this.#open();
  }

  /** The step of the point here; infinity behind the last one. */
  get step(): number {
    return this.#columns?.x[this.#place] ?? noStep;
  }

  get value(): number {
    return this.#columns!.value[this.#place]!;
  }

  get at(): number {
    return this.#columns!.at[this.#place]!;
  }

  advance(): void {
    this.#place++;
    if (this.#place >= this.#columns!.x.length) this.#open();
  }

  #open(): void {
    this.#place = 0;
    do this.#columns = this.#blocks.pop()?.columns(true);
    while (this.#columns?.x.length === 0);
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
