import { pythonStrip } from "@tinker-ts/hub";
import { parseJson, writeJson, type JsonValue } from "../json-text.js";
import type { ToolCall, UnparsedToolCall } from "../message.js";

/** A call, or a call that could not be parsed. */
export type ReadCall = ToolCall | UnparsedToolCall;

/** Whether a call could be parsed. */
export function isToolCall(call: ReadCall): call is ToolCall {
  return "function" in call;
}

/** Parses `{"name": ..., "arguments": {...}}`. */
export function readJsonCall(body: string, rawText: string): ReadCall {
  let value: JsonValue;
  try {
    value = parseJson(body);
  } catch (error) {
    return { rawText, error: `Invalid JSON: ${messageOf(error)}` };
  }
  if (!(value instanceof Map)) return { rawText, error: "Tool call is not a JSON object" };
  const [name, args, id] = [value.get("name"), value.get("arguments"), value.get("id")];
  if (typeof name !== "string") return { rawText, error: "Missing or invalid 'name' field" };
  if (!(args instanceof Map)) return { rawText, error: "Missing or invalid 'arguments' field" };
  return {
    id: typeof id === "string" ? id : null,
    function: { name, arguments: writeJson(args) },
  };
}

/** Parses `<function=NAME><parameter=KEY>VALUE</parameter></function>`. */
export function readXmlCall(body: string, rawText: string): ReadCall {
  const refuse = (error: string): UnparsedToolCall => ({ rawText, error });
  const text = pythonStrip(body);
  const open = /^<function=([^>\n]+)>/.exec(text);
  const close = "</function>";
  if (!open || !text.endsWith(close) || text.length < open[0].length + close.length) {
    return refuse("Malformed Qwen3.5 tool call XML");
  }
  const name = pythonStrip(open[1]!);
  if (name === "") return refuse("Missing function name");
  const inner = text.slice(open[0].length, -close.length);
  const args = new Map<string, JsonValue>();
  let end = 0;
  for (const match of inner.matchAll(/<parameter=([^>\n]+)>(.*?)<\/parameter>/gs)) {
    if (pythonStrip(inner.slice(end, match.index)) !== "") {
      return refuse("Unexpected non-parameter content inside <function> block");
    }
    const key = pythonStrip(match[1]!);
    if (key === "") return refuse("Empty parameter name");
    args.set(key, jsonOrText(pythonStrip(match[2]!)));
    end = match.index + match[0].length;
  }
  if (pythonStrip(inner.slice(end)) !== "") {
    return refuse("Unexpected trailing content inside <function> block");
  }
  return { id: null, function: { name, arguments: writeJson(args) } };
}

/** A call with arguments in plain JSON. */
export function readPlainCall(
  call: { readonly id: string | null; readonly name: string; readonly arguments: string },
  rawText: string,
): ReadCall {
  try {
    parseJson(call.arguments);
  } catch (error) {
    return { rawText, error: `Invalid JSON: ${messageOf(error)}` };
  }
  return { id: call.id, function: { name: call.name, arguments: call.arguments } };
}

/** The fields of a message for parsed calls. */
export function callFields(calls: readonly ReadCall[]): {
  toolCalls?: ToolCall[];
  unparsedToolCalls?: UnparsedToolCall[];
} {
  const toolCalls = calls.filter(isToolCall);
  const unparsed = calls.filter((call): call is UnparsedToolCall => !isToolCall(call));
  return {
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(unparsed.length > 0 ? { unparsedToolCalls: unparsed } : {}),
  };
}

/** A value as JSON if it is JSON; a text that looks like a number becomes one. */
function jsonOrText(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
