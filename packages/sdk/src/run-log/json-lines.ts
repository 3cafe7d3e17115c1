/*
 * Lines of JSON as run folders hold them. What is written is JSON for everybody: a number that is not
 * finite is null and its name is in the line's mark. What is read is whatever was written by others, too:
 * Python's bare NaN and Infinity, the same as texts, and lines that a crash has cut.
 */

/** Anything that JSON can say, plus numbers that it cannot. */
export type LineValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly LineValue[]
  | { readonly [key: string]: LineValue };

/** One line's object. */
export type Line = Readonly<Record<string, LineValue>>;

/** The key of a line that names the numbers which JSON cannot say: `{"loss": "NaN"}`. */
export const nonFiniteMark = "_non_finite";

const nonFinite = new Map<string, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
]);

/** A line of JSON with its newline; numbers at the top that are not finite are null and marked. */
export function toJsonLine(line: Line): string {
  const marks = Object.entries(line)
    .filter(([, value]) => typeof value === "number" && !Number.isFinite(value))
    .map(([key, value]) => [key, `${value as number}`] as const);
  const marked =
    marks.length === 0 ? line : { ...line, [nonFiniteMark]: Object.fromEntries(marks) };
  return `${JSON.stringify(marked)}\n`;
}

/** The object of one line, or undefined when it is none. */
export function parseJsonLine(text: string): Line | undefined {
  const value = parseJson(text) ?? parseJson(quoteBareNumbers(text));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { [nonFiniteMark]: marks, ...line } = value as Record<string, LineValue>;
  const result: Record<string, LineValue> = {};
  for (const [key, entry] of Object.entries(line)) {
    const word = typeof entry === "string" ? entry : markOf(marks, key);
    result[key] = (word === undefined ? undefined : nonFinite.get(word)) ?? entry;
  }
  return result;
}

/** What was read of a file of lines. */
export interface ReadLines {
  /** The lines, in order. */
  readonly lines: readonly Line[];
  /** Numbers (from 1) of lines that are not JSON objects. */
  readonly brokenLines: readonly number[];
  /** Where to go on when the file has grown: behind the last newline. */
  readonly nextByte: number;
}

/** Reads whole lines; an unfinished last line is left for later, blank ones are nothing. */
export function parseJsonLines(bytes: Uint8Array): ReadLines {
  const nextByte = bytes.lastIndexOf(10) + 1;
  const text = new TextDecoder().decode(bytes.subarray(0, nextByte));
  const lines: Line[] = [];
  const brokenLines: number[] = [];
  for (const [index, row] of text.split("\n").entries()) {
    if (row.trim() === "") continue;
    const line = parseJsonLine(row);
    if (line) lines.push(line);
    else brokenLines.push(index + 1);
  }
  return { lines, brokenLines, nextByte };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function quoteBareNumbers(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g, (match) =>
    match.startsWith('"') ? match : `"${match}"`,
  );
}

function markOf(marks: LineValue, key: string): string | undefined {
  if (typeof marks !== "object" || marks === null || Array.isArray(marks)) return undefined;
  const mark = Object.hasOwn(marks, key) ? (marks as Line)[key] : undefined;
  return typeof mark === "string" ? mark : undefined;
}
