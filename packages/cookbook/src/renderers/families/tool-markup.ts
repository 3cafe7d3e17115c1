import { argumentsJson, argumentsOf } from "../check-messages.js";
import { pythonText, writeJson, type JsonValue } from "../json-text.js";
import type { Markup } from "../markup.js";
import type { ToolCall } from "../message.js";
import { m } from "./chat-ml.js";

/** `<tool_call>` with a JSON object. */
export function jsonCall(call: ToolCall): Markup {
  const { name } = call.function;
  const body = writeJson({ name, arguments: argumentsJson(call) });
  return m`<tool_call>\n${body}\n</tool_call>`;
}

/** `<tool_call>` with one tag per argument; values other than strings in Python's notation, or as JSON. */
export function xmlCall(call: ToolCall, scalars: "python" | "json"): Markup {
  const parameters = [...argumentsOf(call)].map(
    ([key, value]) => `<parameter=${key}>\n${valueText(value, scalars)}\n</parameter>\n`,
  );
  return m`<tool_call>\n<function=${call.function.name}>\n${parameters.join("")}</function>\n</tool_call>`;
}

function valueText(value: JsonValue, scalars: "python" | "json"): string {
  if (typeof value === "string") return value;
  return scalars === "python" ? pythonText(value) : writeJson(value);
}
