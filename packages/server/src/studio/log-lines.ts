import { hash } from "node:crypto";
import { localOwner } from "../auth/authenticator.js";
import { badRequest, type ApiError } from "../errors/api-error.js";
import { toNumber, toPlain, type Plain } from "../store/sql.js";

/** The id of a run that an owner logs under a name: others may use the same name, and learn nothing from it. */
export function scopedLogId(owner: string, name: string): string {
  if (owner === localOwner) return name;
  return `${name}.${hash("sha256", JSON.stringify([owner, name])).slice(0, 12)}`;
}

/** What a line or a part of it says. */
export type Fields = Readonly<Record<string, unknown>>;

/** A line that has been looked at. */
export interface Line {
  readonly number: number;
  readonly run: string;
  readonly writer: string;
  readonly n: number;
  readonly kind: string;
  readonly fields: Fields;
}

const idForm = /^[\w.-]{1,100}$/;
const maxMetrics = 2000;
// What a column of text cannot hold: NUL, and halves of characters.
const keyForm = /^[^\0\p{Cs}]{1,300}$/u;
/** Times that a date can be made of. */
const lastTimeMs = 8.64e15;
const kinds = new Set([
  "open",
  "watch",
  "metrics",
  "rollouts",
  "examples",
  "checkpoint",
  "span",
  "text",
  "close",
]);

/** Reads lines, with a pause behind each. */
export function* readLines(rows: readonly string[]): Generator<void, Line[], void> {
  const lines: Line[] = [];
  for (const [index, row] of rows.entries()) {
    if (row.trim() === "") continue;
    const number = index + 1;
    let fields: unknown;
    try {
      fields = JSON.parse(row);
    } catch {
      throw badRequest(`line ${number}`, "is not JSON");
    }
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      throw badRequest(`line ${number}`, "must be a JSON object");
    }
    const { run, writer, n, kind } = fields as Fields;
    const line = { number, run, writer, n, kind, fields } as Line;
    if (typeof run !== "string" || !idForm.test(run)) {
      throw lineError(line, "run", "must have 1 to 100 letters, digits, dots, dashes");
    }
    if (typeof writer !== "string" || !idForm.test(writer)) {
      throw lineError(line, "writer", "must have 1 to 100 letters, digits, dots, dashes");
    }
    if (!Number.isSafeInteger(n) || (n as number) < 1) {
      throw lineError(line, "n", "must be the count of the line, from 1");
    }
    if (typeof kind !== "string" || !kinds.has(kind)) {
      throw lineError(line, "kind", `must be one of ${[...kinds].join(", ")}`);
    }
    lines.push(line);
    yield;
  }
  return lines;
}

/** The numbers of a line, by metric; what is no number stays in the logger's own files. */
export function valuesOf(line: Line, isFolder: boolean): Record<string, Plain> {
  const { metrics } = line.fields;
  if (typeof metrics !== "object" || metrics === null || Array.isArray(metrics)) {
    throw lineError(line, "metrics", "must be an object of numbers");
  }
  const entries = Object.entries(metrics);
  if (entries.length > maxMetrics && !isFolder) {
    throw lineError(line, "metrics", `at most ${maxMetrics} in a line, got ${entries.length}`);
  }
  const bad = entries.find(([key]) => !keyForm.test(key))?.[0];
  if (bad !== undefined) {
    const name = JSON.stringify(bad.slice(0, 40));
    throw lineError(line, "metrics", `the name ${name} must have 1 to 300 whole characters`);
  }
  // From entries, because a key may be called __proto__.
  return Object.fromEntries(
    entries.flatMap(([key, given]): [string, Plain][] => {
      const value = typeof given === "boolean" ? Number(given) : toNumber(given);
      return value === undefined ? [] : [[key, toPlain(value)]];
    }),
  );
}

/** When something was, in milliseconds; undefined where it does not say, or says what cannot be. */
export function timeOf({ time }: Fields): number | undefined {
  const ms = Math.round((toNumber(time) ?? Number.NaN) * 1000);
  return Math.abs(ms) <= lastTimeMs ? ms : undefined;
}

/** What is wrong with a field of a line. */
export function lineError(
  { number }: Pick<Line, "number">,
  field: string,
  problem: string,
): ApiError {
  return badRequest(`line ${number}`, `${field}: ${problem}`);
}

/** A field that must be text. */
export function textOf(line: Line, field: string): string {
  const value = line.fields[field];
  if (typeof value === "string") return value;
  throw lineError(line, field, "must be text");
}

/** A field that must be a number. */
export function numberOf(line: Line, field: string): number {
  const value = finiteOf(line.fields[field]);
  if (value !== undefined) return value;
  throw lineError(line, field, "must be a finite number");
}

/** A number that a column can hold; JSON may say 1e999. */
export function finiteOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** A list of numbers; what is none in it is NaN. */
export function numbersOf(value: unknown): number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.map((one) => toNumber(one) ?? Number.NaN);
}

/** Whether a value is a list of texts. */
export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
