import { pythonStrip } from "@tinker-ts/hub";
import type { ChatFormat, MessagePlace, RenderedMessage } from "../chat-format.js";
import { declarationMarkup, declaringMessage } from "../declared-tools.js";
import { writeJson } from "../json-text.js";
import { markupOf } from "../markup.js";
import { contentParts, hasThinking, textOf, type Message, type ToolSpec } from "../message.js";
import { literal, type MarkSigns } from "../parsing/marked-text.js";
import { pythonCall, readPythonCalls } from "../parsing/python-calls.js";
import { findUnterminated, partsOf, splitBlocks } from "../parsing/think-blocks.js";
import { callFields } from "../parsing/tool-calls.js";
import type { RendererOptions } from "../registry.js";
import { onlyText } from "../check-messages.js";

const turns = ["<|im_start|>", "<|im_end|>"];
const callMarks = ["<|tool_call_start|>", "<|tool_call_end|>"] as const;
const marks = [
  ...turns,
  ...callMarks,
  "<|tool_list_start|>",
  "<|tool_list_end|>",
  "<|tool_response_start|>",
  "<|tool_response_end|>",
  "<think>",
  "</think>",
];
const m = markupOf(marks);

/** The generation of the template: LFM2.5 declares functions and returns results without marks, and drops past reasoning. */
export type Lfm2Generation = "2" | "2.5";

/** LFM2 and LFM2.5: calls precede the text, in Python's notation. */
export function lfm2(
  name: string,
  options: RendererOptions,
  generation: Lfm2Generation,
): ChatFormat {
  const strips = options.stripThinkingFromHistory ?? generation === "2.5";
  return {
    name,
    marks,
    requiredMarks: turns,
    begin: "bos",
    stops: ["<|im_end|>"],
    extension: strips ? "sometimes" : "always",
    ...(strips ? { prepare: withoutPastThinking } : {}),
    renderMessage: (message, place) => renderMessage(message, place, generation),
    generationSuffix: (role, place) => header(role, place),
    reader: { thinkTags: ["<think>", "</think>"], read },
    declareTools: (tools, systemPrompt) => declareTools(tools, systemPrompt, generation),
    openAI: { thinking: "inline", arguments: "object" },
  };
}

function header(role: string, { index }: MessagePlace) {
  return index > 0 ? m`\n<|im_start|>${role}\n` : m`<|im_start|>${role}\n`;
}

/**
 * Removes reasoning from answers, and the blanks around the rest: from all but the last one of a prompt, and from the one that
 * is written after it.
 */
function withoutPastThinking(messages: readonly Message[]): readonly Message[] {
  const last = messages.slice(0, -1).findLastIndex(({ role }) => role === "assistant");
  return messages.map((message, index) => {
    const isPast = index < last && message.role === "assistant";
    return isPast && hasThinking(message)
      ? { ...message, content: pythonStrip(textOf(message)) }
      : message;
  });
}

function renderMessage(
  message: Message,
  place: MessagePlace,
  generation: Lfm2Generation,
): RenderedMessage {
  const head = header(message.role, place);
  const declared = declarationMarkup(message);
  if (declared) return { header: head, output: [m`${declared}<|im_end|>`] };
  if (message.role === "tool" && generation === "2") {
    const result = onlyText(message);
    return {
      header: head,
      output: [m`<|tool_response_start|>${result}<|tool_response_end|><|im_end|>`],
    };
  }
  if (message.role !== "assistant") {
    return { header: head, output: [m`${onlyText(message)}<|im_end|>`] };
  }
  const parts = contentParts(message.content).flatMap((part) => {
    if (part.type === "thinking") return m`<think>${part.thinking}</think>`;
    return part.type === "text" ? [part.text] : m`${onlyText(message)}`;
  });
  const calls = (message.toolCalls ?? []).map((call) => pythonCall(call, "python"));
  const list =
    calls.length === 0 ? [] : m`<|tool_call_start|>[${calls.join(", ")}]<|tool_call_end|>`;
  return { header: head, output: [m`${list}${parts}<|im_end|>`] };
}

function declareTools(
  tools: readonly ToolSpec[],
  systemPrompt: string,
  generation: Lfm2Generation,
): readonly Message[] {
  if (tools.length === 0) {
    return systemPrompt === "" ? [] : [{ role: "system", content: systemPrompt }];
  }
  const list = tools.map((tool) => writeJson({ type: "function", function: tool })).join(", ");
  const before = systemPrompt === "" ? "" : `${systemPrompt}\n`;
  const declaration =
    generation === "2"
      ? m`${before}List of tools: <|tool_list_start|>[${list}]<|tool_list_end|>`
      : m`${before}List of tools: [${list}]`;
  return [declaringMessage(declaration)];
}

function read(text: string, signs: MarkSigns): Message {
  const [open, close] = callMarks.map((mark) => literal(signs.sign(mark)));
  const calls = [...text.matchAll(new RegExp(`${open}(.*?)${close}`, "gs"))].flatMap(([, body]) =>
    readPythonCalls(signs.spell(body ?? "")),
  );
  const said = text.replaceAll(new RegExp(`${open}.*?(?:${close}|$)`, "gs"), "");
  const dangling = findUnterminated(text, signs, [callMarks]);
  const blocks = splitBlocks(said, signs);
  return {
    role: "assistant",
    content: blocks ? partsOf(blocks, signs) : signs.spell(said),
    ...callFields([...calls, ...(dangling ? [dangling] : [])]),
  };
}
