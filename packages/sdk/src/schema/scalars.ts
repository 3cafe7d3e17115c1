import { fromBase64 } from "./base64.js";
import type { Cursor } from "./cursor.js";

const minInt64 = -(2n ** 63n);
const maxUint64 = 2n ** 64n - 1n;

/** Reads an integer: integral floats and numeric text pass, nothing is ever rounded. */
export function readInteger(value: unknown, allowBig: boolean, cursor: Cursor): number | bigint {
  const exact = typeof value === "string" ? integerFromText(value) : value;
  if (typeof exact === "number" && Number.isInteger(exact)) {
    if (Number.isSafeInteger(exact)) return exact === 0 ? 0 : exact;
    return cursor.fail(
      `the integer ${exact} is beyond 2^53 and not exact any more; ${allowBig ? "pass a bigint" : "it cannot be represented"}`,
    );
  }
  if (typeof exact !== "bigint") return cursor.expected("an integer", value);
  if (BigInt.asIntN(54, exact) === exact && exact !== -(2n ** 53n)) return Number(exact);
  if (!allowBig) return cursor.fail(`the integer ${exact} is beyond 2^53`);
  if (exact < minInt64 || exact > maxUint64) {
    return cursor.fail(`the integer ${exact} does not fit into 64 bits`);
  }
  return exact;
}

/** What JSON has no numbers for, as ProtoJSON and the usual parsers of floats spell it. */
const measuredWords = new Map([
  ["Infinity", Infinity],
  ["-Infinity", -Infinity],
  ["NaN", Number.NaN],
]);

/** A measured number as JSON can carry it. */
export function writeMeasured(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}

/** Reads a double; numeric text passes. It is finite, unless it was measured. */
export function readNumber(value: unknown, cursor: Cursor): number {
  const isWord = cursor.isMeasured && (typeof value === "string" || typeof value === "number");
  const word = isWord ? measuredWords.get(String(value)) : undefined;
  if (word !== undefined) return word;
  const parsed =
    typeof value === "string" && /^\s*[+-]?(\d|\.\d)/.test(value)
      ? Number(value)
      : typeof value === "bigint"
        ? Number(value)
        : value;
  if (typeof parsed !== "number" || Number.isNaN(parsed)) return cursor.expected("a number", value);
  if (!Number.isFinite(parsed)) return cursor.fail("infinity is not allowed in JSON");
  return parsed;
}

const trueTexts = new Set(["true", "1", "yes", "on", "t", "y"]);
const falseTexts = new Set(["false", "0", "no", "off", "f", "n"]);

/** Reads a boolean; the usual spellings pass, anything else is refused rather than taken as true. */
export function readBoolean(value: unknown, cursor: Cursor): boolean {
  if (typeof value === "boolean") return value;
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text === "string") {
    if (trueTexts.has(text.toLowerCase())) return true;
    if (falseTexts.has(text.toLowerCase())) return false;
  }
  return cursor.expected("true or false", value);
}

const base64Pattern = /^[A-Za-z0-9+/_-]*={0,2}$/;

/** Reads base64 (also its URL form); refuses what `Buffer` would silently skip. */
export function readBase64(value: unknown, cursor: Cursor): Uint8Array {
  if (typeof value !== "string") return cursor.expected("base64 text", value);
  const unpadded = value.replace(/=+$/, "").length;
  const padded = value.length - unpadded;
  if (!base64Pattern.test(value) || unpadded % 4 === 1 || (padded > 0 && value.length % 4 !== 0)) {
    return cursor.fail("not valid base64");
  }
  return fromBase64(value);
}

function integerFromText(text: string): number | bigint | undefined {
  if (text.length > 40) return undefined;
  const match = /^\s*([+-]?\d+)(?:\.0*)?\s*$/.exec(text);
  return match ? BigInt(match[1]!.replace("+", "")) : undefined;
}
