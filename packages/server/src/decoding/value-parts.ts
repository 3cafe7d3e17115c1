import { ApiError } from "../errors/api-error.js";

/** What comes from one thread to another within some ten milliseconds: things, and numbers and texts in lists. */
const [maxParts, maxEntries] = [20_000, 300_000];

/** Refuses a value of which the event loop would have to make a great many things. */
export function checkValueParts(value: unknown): void {
  let [parts, entries] = [0, 0];
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (typeof one !== "object" || one === null || ArrayBuffer.isView(one)) continue;
    parts++;
    const inside: readonly unknown[] = Array.isArray(one) ? one : Object.values(one);
    entries += inside.length;
    if (parts > maxParts || entries > maxEntries) {
      const most = `at most ${maxParts} objects and lists and ${maxEntries} entries are taken at a time`;
      throw new ApiError(413, `the body stands for too much: ${most}`);
    }
    for (const part of inside) if (typeof part === "object") waiting.push(part);
  }
}
