import Libsql from "libsql";
import { badRequest } from "../errors/api-error.js";

/** What a column can hold. */
export type SqlValue = string | number | bigint | null | Uint8Array;

/** One row, by column name. */
export type Row = Readonly<Record<string, SqlValue>>;

/** A prepared statement; parameters are positional. */
export interface Statement {
  /** Runs it and returns the number of changed rows. */
  run(...parameters: readonly SqlValue[]): number;
  first(...parameters: readonly SqlValue[]): Row | undefined;
  all(...parameters: readonly SqlValue[]): Row[];
}

interface RawStatement {
  run(parameters: readonly unknown[]): { changes: number };
  get(parameters: readonly unknown[]): Record<string, unknown> | undefined;
  all(parameters: readonly unknown[]): Record<string, unknown>[];
}

interface RawDatabase {
  exec(sql: string): void;
  prepare(sql: string): RawStatement;
  close(): void;
}

/**
 * A thin, strict layer over the SQL library. The library aborts the whole process for values it does
 * not know (booleans, plain objects), cuts text at NUL and returns blobs in different classes; here
 * everything is checked on the way in and made uniform on the way out.
 */
export class SqlDatabase {
  readonly #raw: RawDatabase;
  readonly #prepared = new Map<string, Statement>();

  constructor(file: string) {
    this.#raw = new Libsql(file, {}) as RawDatabase;
  }

  exec(sql: string): void {
    this.#raw.exec(sql);
  }

  /** The statement of this text, prepared once. */
  sql(text: string): Statement {
    let statement = this.#prepared.get(text);
    if (!statement) this.#prepared.set(text, (statement = this.#prepare(text)));
    return statement;
  }

  close(): void {
    this.#prepared.clear();
    this.#raw.close();
  }

  #prepare(text: string): Statement {
    const raw = this.#raw.prepare(text);
    return {
      run: (...parameters) => raw.run(parameters.map(toParameter)).changes,
      first: (...parameters) => {
        const row = raw.get(parameters.map(toParameter));
        return row && toRow(row);
      },
      all: (...parameters) => raw.all(parameters.map(toParameter)).map(toRow),
    };
  }
}

function toParameter(value: SqlValue): unknown {
  if (value === null || typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "string") {
    if (value.includes("\0")) throw badRequest("text", "must not contain a NUL character");
    return value;
  }
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  throw new TypeError(`${String(value)} cannot be stored in a column`);
}

/** The library's own object, made uniform in place: rows come by the thousand. */
function toRow(raw: Record<string, unknown>): Row {
  for (const name in raw) {
    const value = raw[name];
    if (value instanceof ArrayBuffer) raw[name] = new Uint8Array(value);
    else if (name === "_metadata") delete raw[name];
  }
  return raw as Row;
}

/** A number, or the word for one that JSON and a column cannot hold. */
export type Plain = number | "NaN" | "Infinity" | "-Infinity";

const words = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
]);

/** A number in a form that JSON and columns can hold. */
export function toPlain(value: number): Plain {
  return Number.isFinite(value) ? value : (String(value) as Plain);
}

/** The number of a number or of the word for one; undefined for anything else. */
export function toNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : words.get(value);
}
