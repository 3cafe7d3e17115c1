import type { JsonText, NumberList } from "./json-scan.js";

/** What JSON says that has been looked at, with the lists that were taken out of its text. */
export function unfoldJson(
  { text, lists }: JsonText,
  parse: (text: string) => unknown = JSON.parse,
): unknown {
  const root = { value: parse(text) };
  for (const list of lists) putBack(root, list);
  return root.value;
}

/** Puts a list into its place, unless another field of the same name has come behind it. */
function putBack(root: object, { path, numbers }: NumberList): void {
  let holder: unknown = root;
  let at: string | number = "value";
  for (const next of path) {
    holder = ownOf(holder, at);
    at = next;
  }
  const place = ownOf(holder, at);
  if (Array.isArray(place) && place.length === 0) (holder as Holder)[at] = plain(numbers);
}

type Holder = Record<string | number, unknown>;

function ownOf(holder: unknown, at: string | number): unknown {
  const isThere = typeof holder === "object" && holder !== null && Object.hasOwn(holder, at);
  return isThere ? (holder as Holder)[at] : undefined;
}

/** Many times quicker than what the language has for it. */
function plain(numbers: Float64Array): number[] {
  const list: number[] = [];
  list.length = numbers.length;
  for (let place = 0; place < list.length; place++) list[place] = numbers[place]!;
  return list;
}
