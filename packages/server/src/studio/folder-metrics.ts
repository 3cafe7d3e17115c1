import { open, type FileHandle } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { chunkLength, summarize } from "../recording/chunk.js";
import { extendSummary } from "../recording/fold-points.js";
import { toNumber } from "../recording/numbers.js";
import type { SeriesSummary } from "../store/points-table.js";
import { startsOf, type AttemptSeries, type Block, type RunSeries } from "./run-series.js";

/** Longest time that reading holds the event loop. */
const turnMs = 12;
const pieceBytes = 1 << 20;
/** A line that is longer is no line of metrics. */
const maxLineBytes = 2 << 20;
const newline = 10;

/**
 * The metrics of a run's folder, read as the file grows: whole lines only, from where the last reading ended.
 * Lines are what others have written: bare `NaN` and `Infinity` as Python writes them, several for a step,
 * several attempts one after the other, and broken ones, which are skipped and counted.
 */
export class FolderMetrics {
  readonly #file: string;
  readonly #attempts = new Map<number, Map<string, Growing>>();
  /** Where the first line begins that was not read yet. */
  #nextByte = 0;
  /** The file that was read; another of the same name is begun anew. */
  #inode = 0;
  #reading: Promise<void> | undefined;
  #attempt = 1;
  #step = 0;
  /** Grows with every line. */
  version = 0;
  brokenLines = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads what is new; several calls share one reading. */
  update(): Promise<void> {
    return (this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    }));
  }

  /** Everything read so far. */
  series(): RunSeries {
    const all = new Map<string, AttemptSeries[]>();
    for (const [attempt, series] of this.#attempts) {
      for (const [key, growing] of series) {
        const views = all.get(key);
        if (views) views.push(growing.view(attempt));
        else all.set(key, [growing.view(attempt)]);
      }
    }
    return {
      keys: [...all.keys()].toSorted(),
      attempts: (key) => all.get(key) ?? [],
      starts: startsOf(all),
    };
  }

  get attempts(): number {
    return this.#attempt;
  }

  async #read(): Promise<void> {
    const file = await open(this.#file, "r").catch(() => null);
    if (!file) return;
    try {
      const { size, ino } = await file.stat();
      if (size < this.#nextByte || ino !== this.#inode) this.#forget();
      this.#inode = ino;
      await this.#readLines(file, size);
    } finally {
      await file.close();
    }
  }

  async #readLines(file: FileHandle, size: number): Promise<void> {
    let rest: Uint8Array = new Uint8Array(0);
    let position = this.#nextByte;
    let isTooLong = false;
    let turnEnd = performance.now() + turnMs;
    while (position < size) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, size - position));
      const { bytesRead } = await file.read(piece, 0, piece.length, position);
      if (bytesRead === 0) break;
      position += bytesRead;
      const bytes = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
      let start = 0;
      for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
        if (isTooLong) this.brokenLines++;
        else this.#take(bytes.toString("utf8", start, end));
        isTooLong = false;
        start = end + 1;
        this.#nextByte = position - bytes.length + start;
        if (performance.now() < turnEnd) continue;
        await setImmediate();
        turnEnd = performance.now() + turnMs;
      }
      rest = bytes.subarray(start);
      isTooLong ||= rest.length > maxLineBytes;
      if (isTooLong) rest = rest.subarray(rest.length);
    }
  }

  #forget(): void {
    this.#attempts.clear();
    this.#nextByte = 0;
    this.#attempt = 1;
    this.#step = 0;
    this.brokenLines = 0;
    this.version++;
  }

  #take(text: string): void {
    if (text.trim() === "") return;
    const line = parseLine(text);
    if (!line) {
      this.brokenLines++;
      return;
    }
    this.version++;
    const { step, _time: time, _attempt: attempt } = line;
    const x = typeof step === "number" ? step : this.#step;
    this.#step = x;
    if (typeof attempt === "number" && attempt > this.#attempt) this.#attempt = attempt;
    const keys: string[] = [];
    const values: number[] = [];
    let series = this.#current();
    let isBack = false;
    for (const key in line) {
      const value = valueOf(line, key);
      if (value === undefined) continue;
      keys.push(key);
      values.push(value);
      const known = series.get(key);
      // Python's lines do not tell attempts apart, but a metric that goes back has begun anew.
      if (known && known.lastX > x) isBack = true;
    }
    if (isBack) {
      this.#attempt++;
      series = this.#current();
    }
    const at = typeof time === "number" ? time * 1000 : Number.NaN;
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index]!;
      let growing = series.get(key);
      if (!growing) series.set(key, (growing = new Growing()));
      growing.push(x, values[index]!, at);
    }
  }

  /** The series of the attempt that goes on. */
  #current(): Map<string, Growing> {
    let series = this.#attempts.get(this.#attempt);
    if (!series) this.#attempts.set(this.#attempt, (series = new Map()));
    return series;
  }
}

/** Keys of a line that are no metrics. */
const notMetrics = new Set(["step", "_time", "_attempt", "_non_finite"]);

function valueOf(line: Readonly<Record<string, unknown>>, key: string): number | undefined {
  if (notMetrics.has(key)) return undefined;
  let given = line[key];
  if (given === null) given = (line["_non_finite"] as Record<string, unknown> | undefined)?.[key];
  return typeof given === "boolean" ? Number(given) : toNumber(given);
}

/** A line's object; bare numbers of Python that JSON does not know are read as what they are. */
export function parseLine(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = tryParse(text) ?? tryParse(quoted(text));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as Record<string, unknown>;
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

let growingCount = 0;

/** Points that grow: chunks with their summaries, and the open end. */
class Growing {
  readonly #name = `folder ${++growingCount}`;
  readonly #settled: Block[] = [];
  #summary: { readonly summary: SeriesSummary; readonly lastX: number } | undefined;
  #x = new Float64Array(chunkLength);
  #value = new Float64Array(chunkLength);
  #at = new Float64Array(chunkLength);
  #length = 0;

  /** The x of the last point; there is one as soon as anybody asks. */
  get lastX(): number {
    return this.#x[this.#length - 1]!;
  }

  push(x: number, value: number, at: number): void {
    if (this.#length > 0 && this.lastX === x) this.#length--;
    // A full chunk waits for the next x: until then its last value may be replaced.
    else if (this.#length === chunkLength) this.#settle();
    this.#x[this.#length] = x;
    this.#value[this.#length] = value;
    this.#at[this.#length] = at;
    this.#length++;
  }

  view(attempt: number): AttemptSeries {
    const end = this.#open();
    const settled = this.#settled.length;
    const known = this.#summary;
    let summary: SeriesSummary | undefined;
    return {
      attempt,
      count: settled * chunkLength + end.count,
      firstX: this.#settled[0]?.firstX ?? end.firstX,
      lastX: end.lastX,
      get summary() {
        const { x, value } = end.columns(false);
        return (summary ??= extendSummary(known, x, value));
      },
      blocks: () => [...this.#settled.slice(0, settled), end],
    };
  }

  #open(): Block {
    const count = this.#length;
    const columns = {
      x: this.#x.subarray(0, count),
      value: this.#value.subarray(0, count),
      at: this.#at.subarray(0, count),
    };
    return { firstX: columns.x[0]!, lastX: this.lastX, count, columns: () => columns };
  }

  #settle(): void {
    const block = this.#open();
    const columns = block.columns(false);
    const known = summarize(this.#settled.length, columns);
    this.#settled.push({ ...block, known, series: this.#name });
    const { x, value } = columns;
    this.#summary = { summary: extendSummary(this.#summary, x, value), lastX: block.lastX };
    this.#x = new Float64Array(chunkLength);
    this.#value = new Float64Array(chunkLength);
    this.#at = new Float64Array(chunkLength);
    this.#length = 0;
  }
}
