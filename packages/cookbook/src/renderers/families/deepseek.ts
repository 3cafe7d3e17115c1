import { pythonStrip } from "@tinker-ts/hub";
import { ArgumentError } from "tinker-ts";
import type { ChatFormat, MessagePlace, RenderedMessage } from "../chat-format.js";
import { onlyText } from "../check-messages.js";
import { declarationMarkup, declaringMessage } from "../declared-tools.js";
import { writeJson } from "../json-text.js";
import { markupOf, type Markup } from "../markup.js";
import { contentParts, hasThinking, type Message, type ToolSpec } from "../message.js";
import { literal, type MarkSigns } from "../parsing/marked-text.js";
import { findUnterminated, partsOf, splitBlocks } from "../parsing/think-blocks.js";
import { callFields, readPlainCall, type ReadCall } from "../parsing/tool-calls.js";
import type { RendererOptions } from "../registry.js";

const begin = "<｜begin▁of▁sentence｜>";
const end = "<｜end▁of▁sentence｜>";
const sections = [
  ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
  ["<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"],
] as const;
const marks = [
  begin,
  end,
  "<｜User｜>",
  "<｜Assistant｜>",
  "<think>",
  "</think>",
  ...sections.flat(),
  "<｜tool▁sep｜>",
  "<｜tool▁output▁begin｜>",
  "<｜tool▁output▁end｜>",
];
const m = markupOf(marks);

/** DeepSeek V3.1. Tools are used without thinking: the text after a result has no header and no think block. */
export function deepSeek(
  name: string,
  options: RendererOptions,
  mode: "think" | "off",
): ChatFormat {
  const strips = options.stripThinkingFromHistory ?? true;
  const rules: Rules = { isThinking: mode === "think", strips, ...options };
  return {
    name,
    marks,
    requiredMarks: [begin, end, "<｜User｜>", "<｜Assistant｜>"],
    begin: { mark: begin },
    stops: [end],
    extension: mode === "off" ? "always" : strips ? "never" : "sometimes",
    roles: ["system", "user", "assistant", "tool"],
    renderMessage: (message, place) => renderMessage(message, place, rules),
    generationSuffix: (role, place) => suffix(role, place, rules),
    opening: (_, place) => (mode === "think" && place.previous?.role !== "tool" ? m`<think>` : []),
    reader: {
      thinkTags: ["<think>", "</think>"],
      ...(mode === "think" ? { openThinking: "<think>" } : {}),
      read,
    },
    declareTools,
    openAI: { thinking: "field", arguments: "text" },
  };
}

interface Rules extends RendererOptions {
  readonly isThinking: boolean;
  readonly strips: boolean;
}

function renderMessage(message: Message, place: MessagePlace, rules: Rules): RenderedMessage {
  switch (message.role) {
    case "system":
      return renderSystem(message, place, rules);
    case "user":
      return { header: m`<｜User｜>`, output: [m`${onlyText(message)}`] };
    case "tool":
      return {
        header: m`<｜tool▁output▁begin｜>`,
        output: [m`${onlyText(message)}<｜tool▁output▁end｜>`],
      };
    default:
      return renderAssistant(message, place, rules);
  }
}

function renderSystem(message: Message, place: MessagePlace, rules: Rules): RenderedMessage {
  const output = [declarationMarkup(message) ?? m`${onlyText(message)}`];
  if (place.index === 0) return { header: [], output };
  if (rules.systemRoleAsUser) return { header: m`<｜User｜>`, output };
  throw new ArgumentError(
    `messages[${place.index}].role`,
    "a system message can only be the first; set systemRoleAsUser to write later ones as the user's",
  );
}

function renderAssistant(message: Message, place: MessagePlace, rules: Rules): RenderedMessage {
  const calls = message.toolCalls ?? [];
  const followsTool = place.previous?.role === "tool";
  const reasons = hasThinking(message);
  const isPast = rules.strips && !place.isLast;
  const keeps = rules.isThinking && !followsTool && !(isPast && calls.length === 0);
  // Earlier turns and turns without thinking begin after the end of a block.
  const isClosed = !rules.isThinking || (isPast && !(keeps && reasons));
  const isEmpty = rules.isThinking && place.isLast && !reasons;
  return {
    header: followsTool ? [] : isClosed ? m`<｜Assistant｜></think>` : m`<｜Assistant｜>`,
    output: [
      [
        ...(isEmpty && !followsTool ? m`<think></think>` : []),
        ...contentParts(message.content).flatMap((part): Markup => {
          if (part.type === "text") return [part.text];
          if (part.type === "image")
            throw new ArgumentError("content", "this format has no pictures");
          return keeps ? m`<think>${part.thinking}</think>` : [];
        }),
        ...(calls.length === 0 ? [] : renderCalls(calls)),
        { mark: end },
      ],
    ],
  };
}

function renderCalls(calls: NonNullable<Message["toolCalls"]>): Markup {
  const each = calls.flatMap(
    ({ function: called }) =>
      m`<｜tool▁call▁begin｜>${called.name}<｜tool▁sep｜>${called.arguments}<｜tool▁call▁end｜>`,
  );
  return m`<｜tool▁calls▁begin｜>${each}<｜tool▁calls▁end｜>`;
}

function suffix(role: string, place: MessagePlace, rules: Rules): Markup {
  if (role === "user") return m`<｜User｜>`;
  if (place.previous?.role === "tool") return [];
  return rules.isThinking ? m`<｜Assistant｜>` : m`<｜Assistant｜></think>`;
}

function read(text: string, signs: MarkSigns): Message {
  const [open, close] = sections[0].map((mark) => literal(signs.sign(mark)));
  const section = new RegExp(`${open}(.*?)${close}`, "s").exec(text);
  const dangling = findUnterminated(text, signs, sections);
  const calls = [
    ...(section ? readCalls(section[1]!, signs) : []),
    ...(dangling ? [dangling] : []),
  ];
  let said = text;
  if (calls.length > 0) {
    said = pythonStrip(text.replaceAll(new RegExp(`${open}.*?${close}`, "gs"), "\u0000"))
      .split("\u0000")
      .map((piece, index, all) => (index < all.length - 1 ? pythonStrip(piece, "rstrip") : piece))
      .join("");
    said = pythonStrip(said);
  }
  const blocks = splitBlocks(said, signs);
  return {
    role: "assistant",
    content: blocks ? partsOf(blocks, signs) : signs.spell(said),
    ...callFields(calls),
  };
}

function readCalls(section: string, signs: MarkSigns): ReadCall[] {
  const [open, close] = sections[1].map((mark) => literal(signs.sign(mark)));
  const pattern = new RegExp(
    `${open}(.*?)${literal(signs.sign("<｜tool▁sep｜>"))}(.*?)${close}`,
    "gs",
  );
  return [...section.matchAll(pattern)].map(([raw, name, args]) =>
    readPlainCall(
      {
        id: null,
        name: pythonStrip(signs.spell(name!)),
        arguments: pythonStrip(signs.spell(args!)),
      },
      signs.spell(raw),
    ),
  );
}

function declareTools(tools: readonly ToolSpec[], systemPrompt: string): Message[] {
  if (tools.length === 0) return [{ role: "system", content: systemPrompt }];
  const blocks = tools.map(
    ({ name, description, parameters }) =>
      `### ${name}\nDescription: ${description}\n\nParameters: ${writeJson(parameters)}`,
  );
  return [
    declaringMessage(m`${systemPrompt}

## Tools
You have access to the following tools:

${blocks.join("\n")}

IMPORTANT: ALWAYS adhere to this exact format for tool use:
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tool_call_name<｜tool▁sep｜>tool_call_arguments<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Where:
- \`tool_call_name\` must be an exact match to one of the available tools
- \`tool_call_arguments\` must be valid JSON that strictly follows the tool's Parameters Schema
- For multiple tool calls, chain them directly without separators or spaces`),
  ];
}
