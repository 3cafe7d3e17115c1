import { open } from "node:fs/promises";
import { toNumber } from "../recording/numbers.js";
import { extendSummary } from "../recording/fold-points.js";
import { startsOf, type AttemptSeries, type RunSeries } from "./run-series.js";

/** Longest time that reading holds the event loop. */
const turnMs = 12;
const pieceBytes = 1 << 20;
/** A line that is longer is no line of metrics. */
const maxLineBytes = 16 << 20;

/**
 * The metrics of a run's folder, read as the file grows: whole lines only, from where the last reading ended.
 * Lines are what others have written: bare `NaN` and `Infinity` as Python writes them, several for a step,
 * several attempts one after the other, and broken ones, which are skipped and counted.
 */
export class FolderMetrics {
  readonly #file: string;
  readonly #series = new Map<string, Map<number, Growing>>();
  #nextByte = 0;
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
    for (const [key, attempts] of this.#series) {
      all.set(
        key,
        [...attempts].map(([attempt, growing]) => growing.view(attempt)),
      );
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
      const { size } = await file.stat();
      if (size < this.#nextByte) this.#forget();
      let rest: Uint8Array = new Uint8Array(0);
      let position = this.#nextByte;
      let turnEnd = performance.now() + turnMs;
      while (position < size) {
        const piece = Buffer.allocUnsafe(Math.min(pieceBytes, size - position));
        const { bytesRead } = await file.read(piece, 0, piece.length, position);
        if (bytesRead === 0) break;
        position += bytesRead;
        const bytes = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
        let start = 0;
        for (let end = bytes.indexOf(10, start); end >= 0; end = bytes.indexOf(10, start)) {
          this.#take(bytes.toString("utf8", start, end));
          start = end + 1;
          if (performance.now() > turnEnd) {
            await new Promise<void>((resolve) => setImmediate(resolve));
            turnEnd = performance.now() + turnMs;
          }
        }
        this.#nextByte += start;
        rest = bytes.subarray(start);
        if (rest.length > maxLineBytes) break;
      }
    } finally {
      await file.close();
    }
  }

  #forget(): void {
    this.#series.clear();
    this.#nextByte = 0;
    this.#attempt = 1;
    this.#step = 0;
  }

  #take(text: string): void {
    if (text.trim() === "") return;
    const line = parseLine(text);
    if (!line) {
      this.brokenLines++;
      return;
    }
    this.version++;
    const { step, _time: time, _attempt: attempt, _non_finite: marks, ...values } = line;
    const x = typeof step === "number" ? step : this.#step;
    this.#step = x;
    if (typeof attempt === "number" && attempt > this.#attempt) this.#attempt = attempt;
    const numbers = Object.entries(values).flatMap(([key, given]): [string, number][] => {
      const marked = given === null ? (marks as Record<string, unknown> | undefined)?.[key] : given;
      const value = typeof marked === "boolean" ? Number(marked) : toNumber(marked);
      return value === undefined ? [] : [[key, value]];
    });
    // Python's lines do not tell attempts apart, but a metric that goes back has begun anew.
    const isBack = numbers.some(([key]) => {
      const last = this.#series.get(key)?.get(this.#attempt)?.lastX;
      return last !== undefined && last > x;
    });
    if (isBack) this.#attempt++;
    const at = typeof time === "number" ? time * 1000 : Number.NaN;
    for (const [key, value] of numbers) {
      let attempts = this.#series.get(key);
      if (!attempts) this.#series.set(key, (attempts = new Map()));
      let growing = attempts.get(this.#attempt);
      if (!growing) attempts.set(this.#attempt, (growing = new Growing()));
      growing.push(x, value, at);
    }
  }
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

/** Columns that grow. */
class Growing {
  #x = new Float64Array(64);
  #value = new Float64Array(64);
  #at = new Float64Array(64);
  #length = 0;

  get lastX(): number {
    return this.#x[this.#length - 1]!;
  }

  push(x: number, value: number, at: number): void {
    const isSame = this.#length > 0 && this.lastX === x;
    if (isSame) this.#length--;
    if (this.#length === this.#x.length) {
      this.#x = doubled(this.#x);
      this.#value = doubled(this.#value);
      this.#at = doubled(this.#at);
    }
    this.#x[this.#length] = x;
    this.#value[this.#length] = value;
    this.#at[this.#length] = at;
    this.#length++;
  }

  view(attempt: number): AttemptSeries {
    const count = this.#length;
    const columns = {
      x: this.#x.subarray(0, count),
      value: this.#value.subarray(0, count),
      at: this.#at.subarray(0, count),
    };
    const [firstX, lastX] = [columns.x[0]!, columns.x[count - 1]!];
    let summary: AttemptSeries["summary"] | undefined;
    return {
      attempt,
      count,
      firstX,
      lastX,
      get summary() {
        return (summary ??= extendSummary(undefined, columns.x, columns.value));
      },
      blocks: () => [{ firstX, lastX, count, columns: () => columns }],
    };
  }
}

function doubled(numbers: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(numbers.length * 2);
  larger.set(numbers);
  return larger;
}
