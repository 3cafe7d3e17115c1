import { appendFile, mkdir, open, rm, writeFile } from "node:fs/promises";
import path from "node:path";

/**
 * Appends to the files of one folder.
 *
 * - Work is done one after the other, in the order in which it was asked for.
 * - The first append to a file ends a line that a crash has cut, so that what follows stays readable.
 */
export class FolderWriter {
  readonly folder: string;
  readonly #started = new Map<string, Promise<void>>();
  #last: Promise<void> = Promise.resolve();

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Appends whole lines; `durable` ones are on the disk when it resolves. */
  append(name: string, text: string, { durable = false } = {}): Promise<void> {
    return this.#inOrder(async () => {
      const file = path.join(this.folder, name);
      await this.#start(file);
      await appendFile(file, text, durable ? { flush: true } : {});
    });
  }

  /** Puts a whole file into place; a reader sees the old one or the new one, also after a power failure. */
  replace(name: string, text: string): Promise<void> {
    return this.#inOrder(async () => {
      const file = path.join(this.folder, name);
      const { writeFileAtomically } = await import("@tinker-ts/hub/files");
      await writeFileAtomically(file, (draft) => writeFile(draft, text));
    });
  }

  /** Removes files and folders. */
  remove(names: readonly string[]): Promise<void> {
    return this.#inOrder(async () => {
      for (const name of names) {
        await rm(path.join(this.folder, name), { recursive: true, force: true });
      }
    });
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #start(file: string): Promise<void> {
    const started = this.#started.get(file) ?? endCutLine(file);
    this.#started.set(file, started);
    await started;
  }
}

async function endCutLine(file: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const handle = await open(file, "a+");
  try {
    const { size } = await handle.stat();
    if (size === 0) return;
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
    if (buffer[0] !== 10) await handle.appendFile("\n");
  } finally {
    await handle.close();
  }
}

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
