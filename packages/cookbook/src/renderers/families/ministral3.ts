import { ArgumentError } from "tinker-ts";
import { onlyText } from "../check-messages.js";
import type { ChatFormat, RenderedMessage } from "../chat-format.js";
import { writeJson } from "../json-text.js";
import { markupOf, type Markup } from "../markup.js";
import { contentParts, type ContentPart, type Message } from "../message.js";
import type { MarkSigns } from "../parsing/marked-text.js";
import { callFields, readPlainCall, type ReadCall } from "../parsing/tool-calls.js";
import { inserted } from "./insert-system.js";

const required = ["[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "</s>"];
const marks = [
  ...required,
  "[TOOL_CALLS]",
  "[ARGS]",
  "[TOOL_RESULTS]",
  "[/TOOL_RESULTS]",
  "[AVAILABLE_TOOLS]",
  "[/AVAILABLE_TOOLS]",
  "[THINK]",
  "[/THINK]",
];
const m = markupOf(marks);

/** The system message that the template of the reasoning models adds to conversations without one. */
const reasoningPrompt = m`# HOW YOU SHOULD THINK AND ANSWER\n\nFirst draft your thinking process (inner monologue) until you arrive at a response. Format your response using Markdown, and use LaTeX for any mathematical equations. Write both your thoughts and the response in the same language as the input.\n\nYour thinking process must follow the template below:[THINK]Your thoughts or/and draft, like working through an exercise on scratch paper. Be as casual and as long as you want until you are confident to generate the response to the user.[/THINK]Here, provide a self-contained response.`;

/**
 * Ministral 3: Instruct, and Reasoning, which adds a system message to conversations without one. Unlike the
 * template of Instruct, this adds no system message with today's date: pass one for reproducible data.
 */
export function ministral3(name: string, kind: "instruct" | "reasoning"): ChatFormat {
  return {
    name,
    marks,
    requiredMarks: required,
    begin: "bos",
    stops: ["</s>"],
    extension: "always",
    roles: ["system", "tool_declare", "user", "assistant", "tool"],
    ...(kind === "reasoning" ? { prepare: withReasoningPrompt } : {}),
    renderMessage: (message, { index }) => renderMessage(message, index),
    generationSuffix: () => [],
    reader: { thinkTags: ["[THINK]", "[/THINK]"], read },
    declareTools: (tools, systemPrompt) => [
      ...(systemPrompt === "" ? [] : [{ role: "system", content: systemPrompt }]),
      ...(tools.length === 0
        ? []
        : [
            {
              role: "tool_declare",
              content: writeJson(tools.map((tool) => ({ type: "function", function: tool }))),
            },
          ]),
    ],
    openAI: { thinking: "inline", arguments: "text" },
  };
}

/** Marks the system message that the format adds; its think block is of marks. */
const ownPrompt = "";

function withReasoningPrompt(messages: readonly Message[]): readonly Message[] {
  if (messages[0]?.role === "system") return messages;
  return [inserted(messages, "system", ownPrompt), ...messages];
}

function renderMessage(message: Message, index: number): RenderedMessage {
  switch (message.role) {
    case "system": {
      if (index > 0) {
        throw new ArgumentError(
          `messages[${index}].role`,
          "is system; this format has a system message at the beginning alone",
        );
      }
      const said = message.content === ownPrompt ? reasoningPrompt : partsMarkup(message);
      return { header: [], output: [m`[SYSTEM_PROMPT]${said}[/SYSTEM_PROMPT]`] };
    }
    case "tool_declare":
      return { header: [], output: [m`[AVAILABLE_TOOLS]${onlyText(message)}[/AVAILABLE_TOOLS]`] };
    case "tool":
      return { header: [], output: [m`[TOOL_RESULTS]${onlyText(message)}[/TOOL_RESULTS]`] };
    case "user":
      return { header: [], output: [m`[INST]${onlyText(message)}[/INST]`] };
    default: {
      const calls = (message.toolCalls ?? []).flatMap(
        ({ function: { name, arguments: args } }) =>
          m`[TOOL_CALLS]${name}[ARGS]${args === "" ? "{}" : args}`,
      );
      return { header: [], output: [m`${partsMarkup(message)}${calls}</s>`] };
    }
  }
}

function partsMarkup(message: Message): Markup {
  return contentParts(message.content).flatMap((part) => {
    if (part.type === "thinking") return m`[THINK]${part.thinking}[/THINK]`;
    return part.type === "text" ? [part.text] : [onlyText(message)];
  });
}

function read(text: string, signs: MarkSigns): Message {
  const [said = "", ...calls] = text.split(signs.sign("[TOOL_CALLS]"));
  const parts = thinkingParts(said, signs);
  const isPlain = parts.every(({ type }) => type === "text");
  return {
    role: "assistant",
    content: isPlain ? signs.spell(said) : parts,
    ...callFields(calls.map((call) => readCall(call, signs))),
  };
}

/** Text and reasoning in turns; a block that does not end is text. */
function thinkingParts(said: string, signs: MarkSigns): readonly ContentPart[] {
  const [open, close] = [signs.sign("[THINK]"), signs.sign("[/THINK]")];
  const [before = "", ...opened] = said.split(open);
  const text = (value: string): ContentPart[] =>
    value === "" ? [] : [{ type: "text", text: signs.spell(value) }];
  return [
    ...text(before),
    ...opened.flatMap((block): ContentPart[] => {
      const end = block.indexOf(close);
      if (end < 0) return text(open + block);
      const thinking = signs.spell(block.slice(0, end));
      return [{ type: "thinking", thinking }, ...text(block.slice(end + close.length))];
    }),
  ];
}

function readCall(text: string, signs: MarkSigns): ReadCall {
  const [name = "", ...args] = text.split(signs.sign("[ARGS]"));
  const raw = signs.spell(text);
  if (args.length === 0) return { rawText: raw, error: "Missing [ARGS] after the function name" };
  const given = signs.spell(args.join("[ARGS]")).trim();
  return readPlainCall({ id: null, name: signs.spell(name).trim(), arguments: given }, raw);
}
