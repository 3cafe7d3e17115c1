import type { RunSeries } from "./run-series.js";

/** All points of some metrics as CSV: a line per step and attempt, a column per metric. */
export function* seriesCsv(series: RunSeries, keys: readonly string[]): Generator<string> {
  yield `${["attempt", "step", "time", ...keys].map(csvCell).join(",")}\n`;
  for (const { attempt } of series.starts) {
    const rows = new Map<number, { at: number; values: (number | undefined)[] }>();
    for (const [place, key] of keys.entries()) {
      const found = series.attempts(key).find((one) => one.attempt === attempt);
      for (const block of found?.blocks() ?? []) {
        const { x, value, at } = block.columns(true);
        for (const [index, step] of x.entries()) {
          const row = rows.get(step) ?? { at: at[index]!, values: [] };
          rows.set(step, row);
          row.values[place] = value[index]!;
        }
      }
    }
    const ordered = [...rows].toSorted(([a], [b]) => a - b);
    for (let start = 0; start < ordered.length; start += 1000) {
      yield ordered
        .slice(start, start + 1000)
        .map(([step, { at, values }]) => {
          const cells = keys.map((_, place) => values[place] ?? "");
          // Lines of others may not say when they were written.
          const time = Number.isFinite(at) ? new Date(at).toISOString() : "";
          return `${attempt},${step},${time},${cells.join(",")}\n`;
        })
        .join("");
    }
  }
}

/** A cell of text that no spreadsheet takes for a formula. */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
