import { ApiError } from "../errors/api-error.js";

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
