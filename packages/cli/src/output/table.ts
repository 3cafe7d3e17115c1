import { pad, printable, textWidth, truncate } from "../terminal/text-width.js";

/** Rows under headers. */
export interface Table {
  readonly title: string;
  readonly headers: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** What makes a table fit and look right. */
export interface TableOptions {
  /** Columns of the screen; undefined sets no bound. */
  readonly columns: number | undefined;
  readonly bold: (text: string) => string;
}

const gap = 2;
const narrowest = 6;

/** A table as lines; where the screen is too narrow, columns other than the first lose their ends. */
export function renderTable({ title, headers, rows }: Table, options: TableOptions): string[] {
  const heading = options.bold(printable(title));
  if (rows.length === 0) return [heading];
  const cells = rows.map((row) => row.map(printable));
  const natural = headers.map((header, column) =>
    Math.max(textWidth(header), ...cells.map((row) => textWidth(row[column] ?? ""))),
  );
  const widths = options.columns === undefined ? natural : fit(natural, options.columns);
  // On a screen with less room than the narrowest columns take, a line is cut: it must never wrap.
  const cut = (text: string): string =>
    options.columns === undefined ? text : truncate(text, options.columns);
  const line = (row: readonly string[]): string =>
    cut(
      row
        .map((cell, column) => pad(truncate(cell, widths[column]!), widths[column]!))
        .join(" ".repeat(gap))
        .trimEnd(),
    );
  return [
    heading,
    "",
    options.bold(line(headers)),
    cut(widths.map((width) => "\u2500".repeat(width)).join(" ".repeat(gap))),
    ...cells.map(line),
  ];
}

/** Takes columns from the widest ones until all fit; the first one stays as it is. */
function fit(natural: readonly number[], columns: number): number[] {
  const widths = [...natural];
  let excess = widths.reduce((sum, width) => sum + width, gap * (widths.length - 1)) - columns;
  while (excess > 0) {
    const widest = Math.max(...widths.slice(1));
    if (!(widest > narrowest)) break;
    const column = widths.lastIndexOf(widest);
    const others = widths.filter((_, index) => index > 0 && index !== column);
    const floor = Math.max(narrowest, ...others.filter((width) => width < widest), widest - excess);
    const taken = Math.max(1, Math.min(excess, widest - floor));
    widths[column] = widest - taken;
    excess -= taken;
  }
  return widths;
}
