import { pythonStrip } from "@tinker-ts/hub";
import { ArgumentError } from "tinker-ts";
import type { ChatFormat, MessagePlace, OutputPiece, RenderedMessage } from "../chat-format.js";
import { kimiImage } from "../images.js";
import { writeJson } from "../json-text.js";
import { markupOf, type Markup } from "../markup.js";
import { contentParts, textOf, thinkingOf, type Message, type ToolSpec } from "../message.js";
import { literal, type MarkSigns } from "../parsing/marked-text.js";
import { findUnterminated, partsOf, splitBlocks } from "../parsing/think-blocks.js";
import { callFields, readPlainCall, type ReadCall } from "../parsing/tool-calls.js";
import type { RendererOptions } from "../registry.js";
import { inserted } from "./insert-system.js";
import { kimiDeclaration } from "./kimi-declaration.js";

const sections = [
  ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
  // Some checkpoints spell it so.
  ["<|tool_call_section_begin|>", "<|tool_call_section_end|>"],
  ["<|tool_call_begin|>", "<|tool_call_end|>"],
] as const;
const turns = ["<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"];
const marks = [
  ...turns,
  "<think>",
  "</think>",
  ...sections.flat(),
  "<|tool_call_argument_begin|>",
  "<|media_begin|>",
  "<|media_content|>",
  "<|media_end|>",
];
const m = markupOf(marks);
const defaultPrompt = "You are Kimi, an AI assistant created by Moonshot AI.";

/** Options of the variants of a Kimi renderer. */
export interface KimiVariant {
  readonly generation: "k2" | "k25";
  /** @default "think" */
  readonly mode?: "think" | "off";
  /** Keeps the reasoning of earlier turns. @default false */
  readonly preserves?: boolean;
}

/** Kimi K2 and K2.5/K2.6: every turn of the assistant has a think block, empty in earlier ones. */
export function kimi(name: string, options: RendererOptions, variant: KimiVariant): ChatFormat {
  const { generation, mode = "think", preserves = false } = variant;
  const strips = options.stripThinkingFromHistory ?? !preserves;
  const prompt = generation === "k2" ? [] : mode === "off" ? m`<think></think>` : m`<think>`;
  return {
    name,
    marks,
    requiredMarks: turns,
    stops: ["<|im_end|>"],
    extension: strips ? "never" : "sometimes",
    disablesThinking: mode === "off",
    splitsByUserTurn: true,
    turnStart: (messages) =>
      messages.findLastIndex(
        ({ role, toolCalls }) => role === "assistant" && (toolCalls ?? []).length === 0,
      ) + 1,
    prepare: (messages) => withDefaultPrompt(messages),
    renderMessage: (message, place) => renderMessage(message, place, strips, generation),
    generationSuffix: (role) => header({ role }),
    opening: () => prompt,
    reader: {
      thinkTags: ["<think>", "</think>"],
      ...(generation === "k2" ? {} : { openThinking: "<think>" }),
      read,
    },
    declareTools: (tools, systemPrompt) => [
      ...(tools.length === 0
        ? []
        : [{ role: "tool_declare", content: declare(tools, generation) }]),
      { role: "system", content: systemPrompt === "" ? defaultPrompt : systemPrompt },
    ],
    openAI: { thinking: "field", arguments: "text" },
  };
}

function withDefaultPrompt(messages: readonly Message[]): readonly Message[] {
  const at = messages[0]?.role === "tool_declare" ? 1 : 0;
  if (messages[at]?.role === "system") return messages;
  return messages.toSpliced(at, 0, inserted(messages, "system", defaultPrompt));
}

function renderMessage(
  message: Message,
  place: MessagePlace,
  strips: boolean,
  generation: KimiVariant["generation"],
): RenderedMessage {
  if (message.role === "assistant") {
    return { header: header(message), output: [renderAssistant(message, place, strips)] };
  }
  if (message.role === "tool") {
    const { name, toolCallId } = message;
    if (!name || !toolCallId) {
      const field = name ? "toolCallId" : "name";
      throw new ArgumentError(
        `messages[${place.index}].${field}`,
        "must be set on a tool result: the format writes both the function and the call that it answers",
      );
    }
    const head = m`<|im_system|>${name}<|im_middle|>## Return of ${toolCallId}\n`;
    return { header: head, output: renderOther(message, generation) };
  }
  return { header: header(message), output: renderOther(message, generation) };
}

function header({ role }: { readonly role: string }): Markup {
  if (role === "user") return m`<|im_user|>user<|im_middle|>`;
  if (role === "assistant") return m`<|im_assistant|>assistant<|im_middle|>`;
  return m`<|im_system|>${role}<|im_middle|>`;
}

function renderAssistant(message: Message, place: MessagePlace, strips: boolean): Markup {
  const thinking = place.inLastAssistantTurn || !strips ? thinkingOf(message) : "";
  if (contentParts(message.content).some(({ type }) => type === "image")) {
    throw new ArgumentError("content", "a message of the assistant has no pictures");
  }
  const calls = (message.toolCalls ?? []).flatMap(({ id, function: called }, index) => {
    const callId = id === null || id === "" ? `functions.${called.name}:${index}` : id;
    return m`<|tool_call_begin|>${callId}<|tool_call_argument_begin|>${called.arguments}<|tool_call_end|>`;
  });
  const section =
    calls.length === 0 ? [] : m`<|tool_calls_section_begin|>${calls}<|tool_calls_section_end|>`;
  return m`<think>${thinking}</think>${textOf(message)}${section}<|im_end|>`;
}

function renderOther(
  { content, role }: Message,
  generation: KimiVariant["generation"],
): OutputPiece[] {
  const parts = contentParts(content);
  const [first] = parts;
  if (parts.length === 1 && first?.type === "text") return [m`${first.text}<|im_end|>`];
  if (generation === "k2") {
    throw new ArgumentError("content", `a ${role} message takes one text in this format`);
  }
  const pieces = parts.flatMap((part): OutputPiece[] => {
    if (part.type === "text") return [[part.text]];
    if (part.type === "image") {
      return [m`<|media_begin|>image<|media_content|>`, kimiImage(part), m`<|media_end|>\n`];
    }
    throw new ArgumentError("content", `a ${role} message has no reasoning`);
  });
  return [...pieces, m`<|im_end|>`];
}

function read(text: string, signs: MarkSigns): Message {
  const pairs = sections.slice(0, 2).map((pair) => pair.map((mark) => literal(signs.sign(mark))));
  const pattern = pairs.map(([open, close]) => `${open}(.*?)${close}`).join("|");
  const section = new RegExp(pattern, "s").exec(text);
  const said = section ? text.slice(0, section.index) : text;
  const dangling = findUnterminated(text, signs, sections);
  const blocks = splitBlocks(said, signs);
  return {
    role: "assistant",
    content: blocks ? partsOf(blocks, signs) : signs.spell(said),
    ...callFields([
      ...(section ? readCalls(section[1] ?? section[2] ?? "", signs) : []),
      ...(dangling ? [dangling] : []),
    ]),
  };
}

function readCalls(section: string, signs: MarkSigns): ReadCall[] {
  const [open, close] = sections[2].map((mark) => literal(signs.sign(mark)));
  const middle = literal(signs.sign("<|tool_call_argument_begin|>"));
  const pattern = new RegExp(`${open}([^<\ufdd0-\ufdef]+:\\d+\\s*)${middle}(.*?)${close}`, "gs");
  return [...section.matchAll(pattern)].map(([raw, given, args]) => {
    const id = pythonStrip(given!);
    const path = id.slice(0, id.indexOf(":"));
    const name = path.slice(path.indexOf(".") + 1);
    return readPlainCall(
      { id, name, arguments: pythonStrip(signs.spell(args!)) },
      signs.spell(raw),
    );
  });
}

function declare(tools: readonly ToolSpec[], generation: KimiVariant["generation"]): string {
  if (generation === "k25") return kimiDeclaration(tools);
  const specs = tools.map((tool) => ({ type: "function", function: tool }));
  return writeJson(specs, { compact: true, sortKeys: true });
}
