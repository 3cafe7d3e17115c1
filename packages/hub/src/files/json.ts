import { readFile } from "node:fs/promises";
import { HubError } from "../errors.js";

/** A JSON object with unchecked fields. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is an object in the sense of JSON: not null, not a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The tokens of JSON: texts, brackets, commas, colons; everything else is a number, `true`, `null` or an extension of Python. */
export const jsonTokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/**
 * Parses JSON, including Python's extensions: `Infinity`, `-Infinity` and `NaN`, which becomes the string "NaN" so
 * that a field that needs a number rejects it by name.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!/NaN|Infinity/.test(text)) throw error;
    const strict = text.replaceAll(jsonTokens, (token) => {
      if (token === "NaN") return '"NaN"';
      return token.replace(/^(-?)Infinity$/, "$11e999");
    });
    return JSON.parse(strict);
  }
}

/** Reads a JSON file that must be there and must hold an object. */
export async function readJsonObject(path: string, signal?: AbortSignal): Promise<JsonObject> {
  const object = await readJsonObjectIfPresent(path, signal);
  if (object === null) throw new HubError("file_missing", `${path} does not exist.`);
  return object;
}

/** Reads a JSON file that may be absent; null then. */
export async function readJsonObjectIfPresent(
  path: string,
  signal?: AbortSignal,
): Promise<JsonObject | null> {
  const text = await readTextIfPresent(path, signal);
  if (text === null) return null;
  let json: unknown;
  try {
    json = parseJson(text);
  } catch (cause) {
    throw new HubError("invalid_json", `${path} is not valid JSON: ${String(cause)}.`, {
      cause,
    });
  }
  if (!isObject(json)) throw new HubError("invalid_json", `${path} does not hold a JSON object.`);
  return json;
}

/** Reads a text file that may be absent; null then. */
export async function readTextIfPresent(
  path: string,
  signal?: AbortSignal,
): Promise<string | null> {
  try {
    return await readFile(path, { encoding: "utf8", ...(signal ? { signal } : {}) });
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Whether a file system error means that a path, or a folder on the way to it, does not exist. */
export function isMissing(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** The `code` of a system error, such as ENOENT; in the realm of a test runner it is not an instance of `Error`. */
export function errorCode(error: unknown): string | undefined {
  return typeof error === "object" && error !== null && "code" in error
    ? String(error.code)
    : undefined;
}
