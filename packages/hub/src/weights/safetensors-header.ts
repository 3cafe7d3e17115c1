import { isObject } from "../files/json.js";
import { EngineError } from "./engine-error.js";

/** Every element type the format knows, by size in bits; the engine computes with three of them. */
const elementBits = {
  BOOL: 8,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  I16: 16,
  U16: 16,
  F16: 16,
  BF16: 16,
  I32: 32,
  U32: 32,
  F32: 32,
  C64: 64,
  F64: 64,
  I64: 64,
  U64: 64,
} as const;

/** Element type as named in a safetensors header. */
export type SafetensorsDtype = keyof typeof elementBits;

/** Bytes of a tensor of this type and shape. */
export function tensorSizeBytes(dtype: SafetensorsDtype, shape: readonly number[]): number {
  return (elementCount(shape) * elementBits[dtype]) / 8;
}

/** Types in the order in which the format's reference implementation lays tensors out. */
export const dtypeOrder = (Object.keys(elementBits) as SafetensorsDtype[]).toReversed();

/** The location of one tensor: `start` and `end` are byte positions in the file. */
export interface SafetensorsEntry {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

/** A file's contents before any tensor is read. */
export interface SafetensorsHeader {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tensors: ReadonlyMap<string, SafetensorsEntry>;
}

/** The format's own limit: a longer header is a damaged length field, not a model. */
export const maxHeaderBytes = 100_000_000;

/** Checks a header completely, so that a later read can only fail if the disk does. */
export function parseSafetensorsHeader(
  file: string,
  headerText: string,
  dataStart: number,
  fileBytes: number,
): SafetensorsHeader {
  const json = parseJson(file, headerText);
  const duplicate = firstDuplicateKey(headerText);
  if (duplicate !== undefined) throw invalid(file, `tensor "${duplicate}" is listed twice`);
  const entries: SafetensorsEntry[] = [];
  let metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(json)) {
    if (name === "__metadata__") metadata = parseMetadata(file, value);
    else entries.push(parseEntry(file, name, value, dataStart));
  }
  checkLayout(file, entries, dataStart, fileBytes);
  return { metadata, tensors: new Map(entries.map((entry) => [entry.name, entry])) };
}

/** The error for a file that does not follow the format. */
export function invalid(file: string, problem: string, cause?: unknown): EngineError {
  return new EngineError(
    "invalid_safetensors",
    `${file} is not a valid safetensors file: ${problem}. Download or write it again.`,
    { cause },
  );
}

function parseJson(file: string, headerText: string): Record<string, unknown> {
  let json: unknown;
  try {
    json = JSON.parse(headerText);
  } catch (cause) {
    throw invalid(file, "its header is not JSON", cause);
  }
  if (!isObject(json)) throw invalid(file, "its header is not a JSON object");
  return json;
}

function parseMetadata(file: string, value: unknown): Record<string, string> {
  if (!isObject(value)) throw invalid(file, "__metadata__ is not an object");
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") throw invalid(file, `__metadata__ "${key}" is not a string`);
  }
  return Object.fromEntries(Object.entries(value).map(([key, text]) => [key, String(text)]));
}

function parseEntry(
  file: string,
  name: string,
  value: unknown,
  dataStart: number,
): SafetensorsEntry {
  const fail = (problem: string) => invalid(file, `tensor "${name}" ${problem}`);
  if (!isObject(value)) throw fail("is not described by an object");
  const { dtype, shape, data_offsets: offsets } = value;
  if (!isDtype(dtype)) throw fail(`has the unknown dtype ${JSON.stringify(dtype)}`);
  if (!isSizeList(shape)) throw fail(`has the invalid shape ${JSON.stringify(shape)}`);
  const [begin, end] = isSizeList(offsets) && offsets.length === 2 ? offsets : [];
  if (begin === undefined || end === undefined || begin > end) {
    throw fail(`has the invalid data_offsets ${JSON.stringify(offsets)}`);
  }
  const sizeBytes = tensorSizeBytes(dtype, shape);
  if (sizeBytes !== end - begin) {
    throw fail(
      `of shape ${formatShape(shape)} and dtype ${dtype} needs ${sizeBytes} bytes, not ${end - begin}`,
    );
  }
  return { name, dtype, shape, start: dataStart + begin, end: dataStart + end };
}

function isDtype(value: unknown): value is SafetensorsDtype {
  return typeof value === "string" && Object.hasOwn(elementBits, value);
}

function isSizeList(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

// The format allows neither overlaps nor holes: bytes that no tensor owns could hide a payload,
// and bytes that two tensors own mean that one of them is wrong.
function checkLayout(
  file: string,
  entries: readonly SafetensorsEntry[],
  dataStart: number,
  fileBytes: number,
): void {
  let position = dataStart;
  let previous = "the header";
  for (const { name, start, end } of entries.toSorted(
    (a, b) => a.start - b.start || a.end - b.end,
  )) {
    if (start < position) throw invalid(file, `tensor "${name}" overlaps ${previous}`);
    if (start > position) {
      throw invalid(file, `${start - position} bytes before tensor "${name}" belong to no tensor`);
    }
    if (end > fileBytes) {
      throw invalid(file, `it is truncated: tensor "${name}" ends at byte ${end} of ${fileBytes}`);
    }
    position = end;
    previous = `tensor "${name}"`;
  }
  if (position !== fileBytes) {
    throw invalid(file, `${fileBytes - position} bytes after ${previous} belong to no tensor`);
  }
}

// JSON.parse silently keeps the last of two equal keys. The walk looks only at strings and
// brackets, which is enough to know which strings are keys of the outermost object.
function firstDuplicateKey(json: string): string | undefined {
  const seen = new Set<string>();
  const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/gs;
  let depth = 0;
  for (const [token, colon] of json.matchAll(tokens)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (depth === 1 && colon !== undefined) {
      const key = String(JSON.parse(token.slice(0, -colon.length)));
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return undefined;
}

/** Number of elements of a tensor of this shape; a scalar has one. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** A shape as shown in messages: `[310, 64]`. */
export function formatShape(shape: readonly number[]): string {
  return `[${shape.join(", ")}]`;
}

/** Whether two shapes are the same. */
export function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis]);
}
