import { onlyText } from "../check-messages.js";
import type { ChatFormat, MessagePlace, RenderedMessage } from "../chat-format.js";
import { declarationMarkup, declaringMessage } from "../declared-tools.js";
import { writeJson } from "../json-text.js";
import { markupOf, type Markup } from "../markup.js";
import { contentParts, hasThinking, type Message, type ToolSpec } from "../message.js";
import { pythonCall, readPythonCalls } from "../parsing/python-calls.js";
import { findUnterminated, partsOf, splitBlocks } from "../parsing/think-blocks.js";
import type { MarkSigns } from "../parsing/marked-text.js";
import { callFields } from "../parsing/tool-calls.js";
import { insertSystem } from "./insert-system.js";

const turns = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"];
const callTags = ["<function_calls>", "</function_calls>"] as const;
const marks = [...turns, ...callTags, "<think>", "</think>"];
const m = markupOf(marks);
const noFunctions = "You do not currently have access to any functions. <functions></functions>";

/** OLMo 3 and 3.1: Instruct, and Think with prompts that open the think block. */
export function olmo3(name: string, kind: "instruct" | "think"): ChatFormat {
  const isThinking = kind === "think";
  const defaultPrompt = isThinking
    ? "You are a helpful AI assistant."
    : `You are a helpful function-calling AI assistant. ${noFunctions}`;
  return {
    name,
    marks,
    requiredMarks: turns,
    // The last answer of a conversation ends with the second.
    stops: ["<|im_end|>", "<|endoftext|>"],
    // An answer ends otherwise when more follows.
    extension: "never",
    prepare: (messages) => insertSystem(messages, defaultPrompt),
    renderMessage: (message, place) => renderMessage(message, place, isThinking, defaultPrompt),
    generationSuffix: (role, place) => header(role, place),
    opening: () => (isThinking ? m`<think>` : []),
    reader: {
      thinkTags: ["<think>", "</think>"],
      ...(isThinking ? { openThinking: "<think>" } : {}),
      read,
    },
    declareTools,
    openAI: { thinking: "inline", arguments: "object" },
  };
}

function header(role: string, { index }: MessagePlace): Markup {
  const name = role === "tool" ? "environment" : role;
  return m`${index > 0 ? "\n" : ""}<|im_start|>${name}\n`;
}

function renderMessage(
  message: Message,
  place: MessagePlace,
  isThinking: boolean,
  defaultPrompt: string,
): RenderedMessage {
  const head = header(message.role, place);
  const declared = declarationMarkup(message);
  if (declared) return { header: head, output: [m`${declared}<|im_end|>`] };
  if (message.role !== "assistant") {
    const text = onlyText(message);
    // The template of Think adds this to every system message but its own.
    const addsNote = isThinking && message.role === "system" && text !== defaultPrompt;
    return { header: head, output: [m`${text}${addsNote ? ` ${noFunctions}` : ""}<|im_end|>`] };
  }
  const parts = contentParts(message.content).flatMap((part): Markup => {
    if (part.type === "thinking") return m`<think>${part.thinking}</think>`;
    return [part.type === "text" ? part.text : onlyText(message)];
  });
  // The prompt opens the think block: a trained answer without reasoning closes it at once.
  const isAbrupt = isThinking && place.isTarget && !hasThinking(message);
  const calls = (message.toolCalls ?? []).map((call) => pythonCall(call, "json")).join("\n");
  const block = calls === "" ? [] : m`<function_calls>${calls}</function_calls>`;
  const end = place.isLast ? m`<|endoftext|>` : m`<|im_end|>`;
  return {
    header: head,
    output: [m`${isAbrupt ? m`<think></think>` : []}${parts}${block}${end}`],
  };
}

function declareTools(tools: readonly ToolSpec[], systemPrompt: string): readonly Message[] {
  if (tools.length === 0) {
    return systemPrompt === "" ? [] : [{ role: "system", content: systemPrompt }];
  }
  const list = writeJson(tools.map((tool) => ({ type: "function", function: tool })));
  const before =
    systemPrompt === ""
      ? "You are a helpful function-calling AI assistant. You are provided with function signatures within <functions></functions> XML tags. You may call one or more functions to assist with the user query. Output any function calls within <function_calls></function_calls> XML tags. Do not make assumptions about what values to plug into functions."
      : systemPrompt;
  return [declaringMessage(m`${before}<functions>${list}</functions>`)];
}

function read(text: string, signs: MarkSigns): Message {
  const [open, close] = callTags;
  const [openSign, closeSign] = [signs.sign(open), signs.sign(close)];
  const start = text.indexOf(openSign);
  const said = start < 0 ? text : text.slice(0, start);
  const end = text.indexOf(closeSign, start);
  const blocks = splitBlocks(said, signs);
  const dangling = findUnterminated(text, signs, [callTags]);
  const calls =
    start < 0 || end < 0
      ? []
      : readPythonCalls(signs.spell(text.slice(start + openSign.length, end)));
  return {
    role: "assistant",
    content: blocks ? partsOf(blocks, signs) : signs.spell(said),
    ...callFields([...calls, ...(dangling ? [dangling] : [])]),
  };
}
