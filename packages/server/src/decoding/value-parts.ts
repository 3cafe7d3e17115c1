import { ApiError } from "../errors/api-error.js";
import { placeName } from "./json-scan.js";

/**
 * What comes from one thread to another within some ten milliseconds: things, of which a field is one that takes
 * twice as long, and numbers and texts in lists.
 */
const [maxParts, maxEntries] = [20_000, 300_000];
const fieldParts = 2;

/** Refuses a value of which the event loop would have to make a great many things. */
export function checkValueParts(value: unknown): void {
  let [parts, entries] = [0, 0];
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const one = waiting.pop();
    if (typeof one !== "object" || one === null || ArrayBuffer.isView(one)) continue;
    const inside: readonly unknown[] = Array.isArray(one) ? one : Object.values(one);
    const names = Array.isArray(one) ? 0 : namesOf(one);
    parts += 1 + fieldParts * names;
    entries += inside.length - names;
    if (parts > maxParts || entries > maxEntries) {
      const most = `at most ${maxParts} objects and lists, half as many fields, and ${maxEntries} entries of lists are taken at a time`;
      throw new ApiError(413, `the body stands for too much: ${most}`);
    }
    for (const part of inside) if (typeof part === "object") waiting.push(part);
  }
}

/** How many fields of an object have names that are no places. */
function namesOf(object: object): number {
  const names = Object.keys(object);
  // Places come first.
  const first = names.findIndex((name) => !placeName.test(name));
  return first < 0 ? 0 : names.length - first;
}
