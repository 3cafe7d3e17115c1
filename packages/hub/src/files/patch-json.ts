import { isObject, jsonTokens, type JsonObject } from "./json.js";

/**
 * Changes fields of an object in its JSON text; fields of objects inside it where a change is an object. All else keeps
 * its spelling: a number such as 0.0 would be parsed and written as 0, which strict readers reject as another type.
 */
export function patchJson(text: string, changes: JsonObject): string {
  const members = membersOf(text);
  let patched = text;
  // From the end, so that earlier positions stay valid.
  for (const { name, start, end } of members.toReversed()) {
    if (!Object.hasOwn(changes, name)) continue;
    const old = text.slice(start, end);
    const change = changes[name];
    const value =
      isObject(change) && old.startsWith("{") ? patchJson(old, change) : JSON.stringify(change);
    patched = patched.slice(0, start) + value + patched.slice(end);
  }
  const present = new Set(members.map(({ name }) => name));
  const added = Object.entries(changes).filter(([name]) => !present.has(name));
  const spacing = /^\{(\s*)/.exec(text)?.[1] ?? "";
  return added.reduce((whole, [name, value]) => {
    const end = /\s*\}\s*$/.exec(whole)?.index ?? whole.length;
    const separator = /\{\s*$/.test(whole.slice(0, end)) ? "" : ",";
    const member = `${separator}${spacing}${JSON.stringify(name)}: ${JSON.stringify(value)}`;
    return whole.slice(0, end) + member + whole.slice(end);
  }, patched);
}

/** The fields of an object in its text, and the positions of their values. */
function membersOf(text: string): { name: string; start: number; end: number }[] {
  const members: { name: string; start: number; end: number }[] = [];
  let depth = 0;
  let name: string | undefined;
  let start: number | undefined;
  let last = 0;
  const close = (): void => {
    if (name !== undefined && start !== undefined) members.push({ name, start, end: last });
    [name, start] = [undefined, undefined];
  };
  for (const { 0: token, index } of text.matchAll(jsonTokens)) {
    if (token === "}" || token === "]") depth -= 1;
    if ((depth === 1 && token === ",") || depth === 0) close();
    else if (depth === 1 && token !== ":") {
      if (name === undefined) name = String(JSON.parse(token));
      else start ??= index;
    }
    if (token === "{" || token === "[") depth += 1;
    last = index + token.length;
  }
  return members;
}
