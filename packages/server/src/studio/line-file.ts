import type { FileHandle } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { openFile } from "./open-file.js";
import { toNumber } from "../store/sql.js";

/** A line of a file as an object. */
export type JsonLine = Readonly<Record<string, unknown>>;

/** A whole line and its number in the file, from 1; null where it is too long to be one. */
export interface NumberedLine {
  readonly n: number;
  readonly text: string | null;
}

/** Longest time that reading holds the event loop. */
const turnMs = 12;
const pieceBytes = 1 << 20;
const maxLineBytes = 2 << 20;
const newline = 10;

/** A file of lines that grows: whole lines are read once, from where the last reading ended. */
export class LineFile {
  readonly #path: string;
  /** Where the first line begins that was not read yet, and its number. */
  #nextByte = 0;
  #nextLine = 1;
  #isTooLong = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Where the next reading begins. */
  get nextByte(): number {
    return this.#nextByte;
  }

  /** Reads new lines, at most so many, without those up to a number. */
  async read(limit: number, after: number): Promise<NumberedLine[]> {
    const file = await openFile(this.#path);
    if (!file) return [];
    try {
      return await this.#readLines(file, limit, after);
    } finally {
      await file.close();
    }
  }

  async #readLines(file: FileHandle, limit: number, after: number): Promise<NumberedLine[]> {
    const { size } = await file.stat();
    const lines: NumberedLine[] = [];
    let rest: Uint8Array = new Uint8Array(0);
    let position = this.#nextByte;
    let turnEnd = performance.now() + turnMs;
    while (position < size && lines.length < limit) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, size - position));
      const { bytesRead } = await file.read(piece, 0, piece.length, position);
      if (bytesRead === 0) break;
      position += bytesRead;
      const bytes = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
      let start = 0;
      let end = bytes.indexOf(newline);
      for (; end >= 0 && lines.length < limit; end = bytes.indexOf(newline, start)) {
        const n = this.#nextLine++;
        if (n > after) {
          lines.push({ n, text: this.#isTooLong ? null : bytes.toString("utf8", start, end) });
        }
        this.#isTooLong = false;
        start = end + 1;
        this.#nextByte = position - bytes.length + start;
        if (performance.now() < turnEnd) continue;
        await setImmediate();
        turnEnd = performance.now() + turnMs;
      }
      if (end >= 0) break;
      rest = bytes.subarray(start);
      if (rest.length <= maxLineBytes) continue;
      this.#isTooLong = true;
      this.#nextByte = position;
      rest = new Uint8Array(0);
    }
    return lines;
  }
}

/** A line's object; bare numbers of Python that JSON does not know are read as what they are. */
export function parseLine(text: string): JsonLine | undefined {
  const value = tryParse(text) ?? tryParse(quoted(text));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as JsonLine;
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function quoted(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g, (match) =>
    match.startsWith('"') ? match : `"${match}"`,
  );
}

/** Keys of a line that are no metrics. */
const notMetrics = new Set(["step", "_time", "_attempt", "_non_finite"]);

/** The metrics of a line of `metrics.jsonl`; `RunLog` writes numbers that JSON lacks as null and beside it. */
export function metricsOf(line: JsonLine): Readonly<Record<string, unknown>> {
  const nonFinite = (line["_non_finite"] ?? {}) as JsonLine;
  return Object.fromEntries(
    Object.entries(line)
      .filter(([key]) => !notMetrics.has(key))
      .map(([key, value]) => [key, value === null ? toNumber(nonFinite[key]) : value]),
  );
}
