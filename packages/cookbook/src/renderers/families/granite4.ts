import { onlyText } from "../check-messages.js";
import type { ChatFormat, MessagePlace, RenderedMessage } from "../chat-format.js";
import { declarationMarkup, declaringMessage } from "../declared-tools.js";
import { writeJson } from "../json-text.js";
import { markupOf, type Markup } from "../markup.js";
import type { Message, ToolSpec } from "../message.js";
import { readTagged } from "../parsing/tagged-reader.js";
import { insertSystem } from "./insert-system.js";
import { jsonCall } from "./tool-markup.js";

const turns = ["<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"];
const marks = [...turns, "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];
const m = markupOf(marks);

const defaultPrompt =
  "You are a helpful assistant. Please ensure responses are professional, accurate, and safe.";

/** Granite 4.0 and 4.1; 4.0 adds a system message to conversations without one. */
export function granite4(name: string, version: "4.0" | "4.1"): ChatFormat {
  return {
    name,
    marks,
    requiredMarks: turns,
    stops: ["<|end_of_text|>"],
    extension: "always",
    ...(version === "4.0"
      ? { prepare: (messages: readonly Message[]) => insertSystem(messages, defaultPrompt) }
      : {}),
    renderMessage,
    generationSuffix: header,
    reader: {
      read: (text, signs) =>
        readTagged(text, signs, { frame: "none", beforeCalls: "\n", calls: "json" }),
    },
    declareTools,
    openAI: { thinking: "inline", arguments: "object" },
  };
}

function header(role: string, { index }: MessagePlace): Markup {
  const name = role === "tool" ? "user" : role;
  const start = index > 0 ? "\n" : "";
  return m`${start}<|start_of_role|>${name}<|end_of_role|>`;
}

function renderMessage(message: Message, place: MessagePlace): RenderedMessage {
  const head = header(message.role, place);
  const declared = declarationMarkup(message);
  if (declared) return { header: head, output: [m`${declared}<|end_of_text|>`] };
  const text = onlyText(message);
  if (message.role === "tool") {
    // Results in a row share one turn.
    const end = place.next?.role === "tool" ? [] : m`<|end_of_text|>`;
    return {
      header: place.previous?.role === "tool" ? [] : head,
      output: [m`\n<tool_response>\n${text}\n</tool_response>${end}`],
    };
  }
  const calls = (message.toolCalls ?? []).flatMap((call, index): Markup => {
    const between = index > 0 || text !== "" ? "\n" : "";
    return [between, ...jsonCall(call)];
  });
  return { header: head, output: [m`${text}${calls}<|end_of_text|>`] };
}

function declareTools(tools: readonly ToolSpec[], systemPrompt: string): readonly Message[] {
  if (tools.length === 0) {
    return systemPrompt === "" ? [] : [{ role: "system", content: systemPrompt }];
  }
  const lines = tools.map((tool) => writeJson({ type: "function", function: tool })).join("\n");
  const before = systemPrompt === "" ? "" : `${systemPrompt}\n\n`;
  return [
    declaringMessage(m`${before}You are a helpful assistant with access to the following tools. You may call one or more tools to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
${lines}
</tools>

For each tool call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>. If a tool does not exist in the provided list of tools, notify the user that you do not have the ability to fulfill the request.`),
  ];
}
