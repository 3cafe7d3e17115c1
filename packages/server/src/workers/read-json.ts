import { ApiError, badRequest } from "../errors/api-error.js";

/** Whether a text is one value, or has one on each line. */
export type JsonForm = "whole" | "lines";

/** Lines of one body; others keep their places for the sake of their numbers. */
const maxLines = 10_000;

/** The texts of JSON in a body, none of which becomes more than the event loop has time for. */
export function readJson(bytes: Uint8Array, form: JsonForm): string[] {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new ApiError(400, "the body is not JSON: it is not UTF-8", { cause: error });
  }
  const texts = form === "whole" ? [text] : text.split("\n", maxLines + 2);
  // The last line ends as well.
  if (texts.at(-1)?.trim() === "" && texts.length > 1) texts.pop();
  if (texts.length > maxLines) throw badRequest("body", `at most ${maxLines} lines at a time`);
  for (const one of texts) checkText(one, maxParts[form]);
  return texts;
}

function checkText(text: string, most: number): void {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported by the reader, who knows which line it is.
    return;
  }
  checkSize(value, most);
}

/** Objects, lists, fields and texts of one value; lists of numbers are bounded by themselves. */
export const maxParts = { whole: 20_000, lines: 40_000 } as const;
const maxNumbers = 400_000;
/** Lists in lists, and objects in objects: they are followed by calls inside calls. */
const maxDepth = 1000;

/** Refuses a value of which the event loop would have to make a great many things. */
export function checkSize(value: unknown, most: number = maxParts.whole): void {
  let [parts, numbers] = [0, 0];
  const waiting: { readonly one: unknown; readonly depth: number }[] = [{ one: value, depth: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { one, depth } = next;
    if (typeof one !== "object" || one === null || ArrayBuffer.isView(one)) continue;
    const isList = Array.isArray(one);
    const inside: readonly unknown[] = isList ? one : Object.values(one);
    parts += 1 + (isList ? 0 : inside.length);
    for (const part of inside) {
      if (typeof part === "object" && part !== null) waiting.push({ one: part, depth: depth + 1 });
      else if (isList && typeof part === "number") numbers++;
      else if (isList) parts++;
    }
    if (parts > most || numbers > maxNumbers) {
      const limit = `at most ${most} objects, lists, fields and texts, and ${maxNumbers} numbers in lists`;
      throw new ApiError(413, `the JSON is too large: ${limit} are taken at a time`);
    }
    if (depth >= maxDepth) {
      const problem = `the JSON has more than ${maxDepth} lists and objects inside each other`;
      throw new ApiError(413, problem);
    }
  }
}
