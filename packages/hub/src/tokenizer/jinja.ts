import type { Template } from "@huggingface/jinja";
import { pythonStrip, type StripSide } from "./python-text.js";

// Templates are written for Python. The library's `strip`, `lstrip`, `rstrip` and `trim` ignore their
// argument, so that `content.strip('\n')` also takes spaces, and its `capitalize` keeps the other letters
// as they are. These calls are turned into calls of functions that do what Python does. Their names cannot
// be written in a template, so that they hide nothing.

const pythonFunctions: Readonly<Record<string, (...values: unknown[]) => string>> = {
  "str.strip": (text, characters) => strip("strip", text, characters),
  "str.lstrip": (text, characters) => strip("lstrip", text, characters),
  "str.rstrip": (text, characters) => strip("rstrip", text, characters),
  "str.capitalize": (text) => {
    const [first = "", ...rest] = asText("capitalize", text);
    return first.toUpperCase() + rest.join("").toLowerCase();
  },
  // The filter, unlike the method, takes any value.
  "filter.trim": (value, characters) =>
    strip("strip", typeof value === "string" ? value : `${(value ?? "") as number}`, characters),
};

/** A parsed template. */
export type CompiledTemplate = (variables: Readonly<Record<string, unknown>>) => string;

/** Parses a template; the library is loaded with the first one. */
export async function compileTemplate(source: string): Promise<CompiledTemplate> {
  const library = await import("@huggingface/jinja");
  const template: Template = new library.Template(source);
  useFunctionsOfPython(template.parsed);
  return (variables) => template.render({ ...variables, ...pythonFunctions });
}

interface Node {
  readonly type: string;
  [field: string]: unknown;
}

/** Walks the tree of a template and replaces calls in place. */
function useFunctionsOfPython(node: unknown): void {
  if (node instanceof Map) {
    for (const pair of node) useFunctionsOfPython(pair);
  } else if (Array.isArray(node)) {
    node.forEach(useFunctionsOfPython);
  } else if (isNode(node)) {
    replaceMethod(node);
    replaceFilter(node);
    Object.values(node).forEach(useFunctionsOfPython);
  }
}

/** `text.strip(characters)` */
function replaceMethod(node: Node): void {
  const { callee, args } = node;
  if (node.type !== "CallExpression" || !isNode(callee) || !Array.isArray(args)) return;
  if (callee.type !== "MemberExpression" || callee["computed"] === true) return;
  const method = nameOf(callee["property"]);
  if (method === undefined || !Object.hasOwn(pythonFunctions, `str.${method}`)) return;
  Object.assign(node, call(`str.${method}`, [callee["object"], ...args]));
}

/** `text | trim(characters)` */
function replaceFilter(node: Node): void {
  const { filter, operand } = node;
  if (node.type !== "FilterExpression" || !isNode(filter)) return;
  const isCall = filter.type === "CallExpression";
  if (nameOf(isCall ? filter["callee"] : filter) !== "trim") return;
  const args = isCall && Array.isArray(filter["args"]) ? filter["args"] : [];
  Object.assign(node, call("filter.trim", [operand, ...args]));
}

function call(name: string, args: unknown[]): Node {
  return { type: "CallExpression", callee: { type: "Identifier", value: name }, args };
}

function nameOf(node: unknown): string | undefined {
  if (!isNode(node) || node.type !== "Identifier") return undefined;
  return typeof node["value"] === "string" ? node["value"] : undefined;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

function strip(side: StripSide, text: unknown, characters: unknown): string {
  const set =
    characters === undefined || characters === null ? undefined : asText(side, characters);
  return pythonStrip(asText(side, text), side, set);
}

function asText(method: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error(`${method}() needs a text, not ${value === null ? "none" : typeof value}`);
}
