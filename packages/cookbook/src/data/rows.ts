import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import type { HubDatasetOptions } from "@tinker-ts/hub";
import { DataError } from "./data-error.js";

/** A row of a data set and where it came from. */
export interface Row {
  readonly value: unknown;
  /** For messages: `data.jsonl:12`. */
  readonly place: string;
}

/** Reads the rows of one file. */
type RowReader = (file: string, name: string) => AsyncIterable<Row>;

const readers: Readonly<Record<string, RowReader>> = {
  ".jsonl": readJsonLines,
  ".ndjson": readJsonLines,
  ".json": readJson,
  ".csv": (file, name) => readCsv(file, name, ","),
  ".tsv": (file, name) => readCsv(file, name, "\t"),
  ".parquet": readParquet,
};

/** The part of a data set on the Hugging Face hub to read. */
export type HubSource = Pick<HubDatasetOptions, "split" | "config" | "revision" | "env" | "signal">;

/**
 * Reads the rows of a JSONL, JSON, CSV, TSV or Parquet file one by one, or of a data set of the Hugging
 * Face hub: `hf:ORG/NAME[:SPLIT]`. A broken line is returned as a `BrokenRow`.
 */
export async function* readRows(source: string, hub: HubSource = {}): AsyncGenerator<Row> {
  const [, id, split] = /^hf:([^:]+)(?::(.+))?$/.exec(source) ?? [];
  if (id === undefined) return yield* readFileRows(source);
  const { hubDatasetFiles } = await import("@tinker-ts/hub");
  for await (const file of hubDatasetFiles(id, { ...(split && { split }), ...hub })) {
    yield* readFileRows(file);
  }
}

async function* readFileRows(file: string): AsyncGenerator<Row> {
  const reader = readers[path.extname(file).toLowerCase()];
  if (!reader) {
    const known = Object.keys(readers).join(", ");
    throw new DataError(`unknown file type; expected one of ${known}`, { place: file });
  }
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) {
    throw new DataError(found ? "not a file" : "no such file", { place: file });
  }
  yield* reader(file, path.basename(file));
}

/** Rows from the program, numbered from 1. */
export async function* rowsOf(
  values: Iterable<unknown> | AsyncIterable<unknown>,
): AsyncGenerator<Row> {
  let number = 1;
  for await (const value of values) yield { value, place: `row ${number++}` };
}

/** A row that could not be read, in its place among the others, so that the caller decides. */
export class BrokenRow {
  readonly problem: string;

  constructor(problem: string) {
    this.problem = problem;
  }
}

async function* readJsonLines(file: string, name: string): AsyncGenerator<Row> {
  let line = 0;
  for await (const text of readLines(file, name)) {
    line++;
    if (text.trim() === "") continue;
    yield { value: parse(text), place: `${name}:${line}` };
  }
}

async function* readJson(file: string, name: string): AsyncGenerator<Row> {
  const text = decoder(name)(await readFile(file));
  const value = parse(text);
  if (value instanceof BrokenRow) throw new DataError(value.problem, { place: name });
  const rows = Array.isArray(value) ? value : onlyList(value);
  if (!rows)
    throw new DataError("expected a list of rows, or an object with one list", { place: name });
  for (const [index, row] of rows.entries()) yield { value: row, place: `${name}[${index}]` };
}

async function* readCsv(file: string, name: string, delimiter: string): AsyncGenerator<Row> {
  const { parse: parseCsv } = await import("csv-parse");
  const decode = decoder(name);
  const parser = parseCsv({ columns: true, delimiter, info: true, skip_empty_lines: true });
  const input = createReadStream(file);
  const pump = async (): Promise<void> => {
    for await (const chunk of input) parser.write(decode(chunk as Buffer, true));
    parser.end(decode(new Uint8Array()));
  };
  const pumped = pump().catch((error: unknown) => parser.destroy(error as Error));
  try {
    for await (const { record, info } of parser as AsyncIterable<{
      record: unknown;
      info: { lines: number };
    }>) {
      yield { value: record, place: `${name}:${info.lines}` };
    }
    await pumped;
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    throw new DataError((cause as Error).message, { place: name, cause });
  } finally {
    input.destroy();
  }
}

async function* readParquet(file: string, name: string): AsyncGenerator<Row> {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } =
    await import("hyparquet");
  const { compressors } = await import("hyparquet-compressors");
  let rowStart = 0;
  try {
    const buffer = await asyncBufferFromFile(file);
    const metadata = await parquetMetadataAsync(buffer);
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows);
      const rows = await parquetReadObjects({
        file: buffer,
        metadata,
        compressors,
        rowStart,
        rowEnd,
      });
      for (const [index, value] of rows.entries()) {
        yield { value: withNumbers(value), place: `${name} row ${rowStart + index + 1}` };
      }
      rowStart = rowEnd;
    }
  } catch (cause) {
    throw new DataError(`invalid Parquet: ${(cause as Error).message}`, {
      place: name,
      cause,
    });
  }
}

/** Lines end with a newline only: other separators may occur inside JSON text. */
async function* readLines(file: string, name: string): AsyncGenerator<string> {
  const decode = decoder(name);
  let rest = "";
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
    const lines = (rest + decode(chunk as Buffer, true)).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  rest += decode(new Uint8Array());
  if (rest !== "") yield rest;
}

/** Decodes UTF-8; other encodings are an error, because they would be trained as garbage. */
function decoder(name: string): (bytes: Uint8Array, stream?: boolean) => string {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  let isFirst = true;
  return (bytes, stream = false) => {
    const [a, b] = bytes;
    const isUtf16 = isFirst && ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff));
    isFirst = false;
    try {
      if (!isUtf16) return utf8.decode(bytes, { stream });
    } catch {
      // Reported below.
    }
    throw new DataError(`${isUtf16 ? "UTF-16 text" : "not UTF-8"}; save the file as UTF-8`, {
      place: name,
    });
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return new BrokenRow(`invalid JSON: ${(error as Error).message}`);
  }
}

function onlyList(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const lists = Object.values(value).filter((entry) => Array.isArray(entry));
  return lists.length === 1 ? (lists[0] as unknown[]) : undefined;
}

/** Parquet's 64-bit integers as numbers where they fit. */
function withNumbers(value: unknown): unknown {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
  if (Array.isArray(value)) return value.map(withNumbers);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withNumbers(entry)]));
}
