import { ArgumentError } from "tinker-ts";
import { pythonStrip } from "@tinker-ts/hub";
import type { ChatFormat, MessagePlace, OutputPiece, RenderedMessage } from "../chat-format.js";
import { onlyText } from "../check-messages.js";
import { markupOf } from "../markup.js";
import {
  contentParts,
  textOf,
  thinkingOf,
  type ContentPart,
  type Message,
  type ToolSpec,
} from "../message.js";
import { literal, type MarkSigns } from "../parsing/marked-text.js";
import { callFields, isToolCall, readPlainCall, type ReadCall } from "../parsing/tool-calls.js";
import type { RendererOptions } from "../registry.js";
import { harmonyDeclaration } from "./harmony-declaration.js";
import { inserted } from "./insert-system.js";

const ends = ["<|end|>", "<|call|>", "<|return|>"];
const marks = ["<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", ...ends];
const m = markupOf(marks);

/** The role of the format's own system message; the role `system` of callers is `developer` here. */
const builtIn = "builtin_system";
const routing = "Calls to these tools must go to the commentary channel: 'functions'.";

/** gpt-oss, in OpenAI's Harmony format: reasoning, calls and answers have channels of their own. */
export function gptOss(
  name: string,
  options: RendererOptions,
  effort?: "low" | "medium" | "high",
): ChatFormat {
  const strips = options.stripThinkingFromHistory ?? true;
  return {
    name,
    marks,
    requiredMarks: marks,
    stops: ["<|return|>", "<|call|>"],
    extension: "never",
    prepare: (messages) =>
      withFinals(effort ? withSystem(messages, effort, options.currentDate) : messages, strips),
    renderMessage,
    generationSuffix: (role) => m`<|start|>${harmonyRole(role)}`,
    reader: { read },
    declareTools,
    openAI: { thinking: "field", arguments: "text" },
  };
}

/** Puts the format's own system message first; it includes the routing of calls. */
function withSystem(
  messages: readonly Message[],
  effort: string,
  date: string = today(),
): readonly Message[] {
  const isRouted = messages[0]?.role === builtIn;
  const lines = [
    "You are ChatGPT, a large language model trained by OpenAI.",
    "Knowledge cutoff: 2024-06",
    `Current date: ${date}`,
    "",
    `Reasoning: ${effort}`,
    "",
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.",
    ...(isRouted ? [textOf(messages[0]!)] : []),
  ];
  const rest = isRouted ? messages.slice(1) : messages;
  return [inserted(messages, builtIn, lines.join("\n")), ...rest];
}

/** Leaves out the reasoning that led to a final answer, once other messages follow. */
function withFinals(messages: readonly Message[], strips: boolean): readonly Message[] {
  if (!strips) return messages;
  const lastFinal = messages
    .slice(0, -1)
    .findLastIndex(({ role, toolCalls }) => role === "assistant" && !toolCalls?.length);
  return messages.map((message, index) => {
    if (index > lastFinal || message.role !== "assistant") return message;
    const parts = contentParts(message.content);
    return { ...message, content: parts.filter(({ type }) => type !== "thinking") };
  });
}

function renderMessage(message: Message, place: MessagePlace): RenderedMessage {
  const header = m`<|start|>${harmonyRole(message.role)}`;
  switch (message.role) {
    case "assistant":
      return { header, output: renderAssistant(message, place) };
    case "system":
      return { header, output: [m`<|message|># Instructions\n\n${onlyText(message)}\n\n<|end|>`] };
    case "tool":
      return renderResult(message, place);
    default:
      return { header, output: [m`<|message|>${onlyText(message)}<|end|>`] };
  }
}

function renderAssistant(message: Message, place: MessagePlace): OutputPiece[] {
  if (contentParts(message.content).some(({ type }) => type === "image")) {
    throw new ArgumentError("content", "this format has no pictures");
  }
  const [thinking, text] = [thinkingOf(message), textOf(message)];
  const analysis =
    thinking === "" ? [] : m`<|channel|>analysis<|message|>${thinking}<|end|><|start|>assistant`;
  const calls = message.toolCalls ?? [];
  if (calls.length === 0) {
    const end = place.isLast ? m`<|return|>` : m`<|end|>`;
    return [[...analysis, ...m`<|channel|>final<|message|>${text}${end}`]];
  }
  const preamble =
    text === "" ? [] : m`<|channel|>commentary<|message|>${text}<|end|><|start|>assistant`;
  const pieces = calls.map(
    ({ function: called }) =>
      m` to=functions.${called.name}<|channel|>commentary <|constrain|>json<|message|>${called.arguments}<|call|>`,
  );
  const [first, ...others] = pieces;
  // Sampling stops at each call, so the header of the next one is never trained.
  return [
    [...analysis, ...preamble, ...first!],
    ...others.flatMap((piece): OutputPiece[] => [{ given: m`<|start|>assistant` }, piece]),
  ];
}

function renderResult(message: Message, place: MessagePlace): RenderedMessage {
  const { name } = message;
  if (!name) {
    throw new ArgumentError(
      `messages[${place.index}].name`,
      "must be set on a tool result: the format writes which function it comes from",
    );
  }
  const source = name.startsWith("functions.") ? name : `functions.${name}`;
  return {
    header: m`<|start|>${source} to=assistant`,
    output: [m`<|channel|>commentary<|message|>${onlyText(message)}<|end|>`],
  };
}

function harmonyRole(role: string): string {
  if (role === builtIn) return "system";
  return role === "system" ? "developer" : role;
}

interface Segment {
  readonly header: string;
  readonly body: string;
  readonly raw: string;
}

function read(text: string, signs: MarkSigns): Message {
  const parts: ContentPart[] = [];
  const calls: ReadCall[] = [];
  for (const { header, body, raw } of segmentsOf(text, signs)) {
    const said = signs.spell(body);
    if (pythonStrip(said) === "") continue;
    const recipient = /to=([^\s<\ufdd0-\ufdef]+)/.exec(header)?.[1];
    const channel = new RegExp(`${literal(signs.sign("<|channel|>"))}([^<\\s\ufdd0-\ufdef]+)`);
    if (recipient?.startsWith("functions.")) {
      const name = recipient.slice("functions.".length);
      calls.push(readPlainCall({ id: null, name, arguments: pythonStrip(said) }, signs.spell(raw)));
      continue;
    }
    const kind = channel.exec(header)?.[1];
    if (kind === "analysis") parts.push({ type: "thinking", thinking: said });
    else if (kind === "final" || kind === "commentary") parts.push({ type: "text", text: said });
  }
  const isOnlyCalls = parts.length === 0 && calls.some(isToolCall);
  const intended = text.split("to=functions.").length - 1;
  if (intended > calls.length) calls.push(danglingCall(text, signs));
  return {
    role: "assistant",
    content: parts.length > 0 ? parts : isOnlyCalls ? "" : signs.spell(text),
    ...callFields(calls),
  };
}

function danglingCall(text: string, signs: MarkSigns): ReadCall {
  const start = text.lastIndexOf(signs.sign("<|start|>"));
  return {
    rawText: signs.spell(start < 0 ? text : text.slice(start)),
    error: "unterminated tool block: 'to=functions.' without arguments that can be read",
  };
}

function segmentsOf(text: string, signs: MarkSigns): Segment[] {
  const segments: Segment[] = [];
  const [start, message] = ["<|start|>", "<|message|>"].map((mark) => signs.sign(mark));
  const endSigns = ends.map((mark) => signs.sign(mark));
  let position = 0;
  for (;;) {
    const at = text.indexOf(message!, position);
    if (at < 0) return segments;
    const found = text.slice(position, at).lastIndexOf(start!);
    const from = found < 0 ? position : position + found;
    const bodyStart = at + message!.length;
    const stops = endSigns
      .map((sign) => ({ sign, place: text.indexOf(sign, bodyStart) }))
      .filter(({ place }) => place >= 0)
      .toSorted((a, b) => a.place - b.place);
    const end = stops[0]?.place ?? text.length;
    position = end + (stops[0]?.sign.length ?? 0);
    segments.push({
      header: text.slice(from, at),
      body: text.slice(bodyStart, end),
      raw: text.slice(from, position),
    });
  }
}

function declareTools(tools: readonly ToolSpec[], systemPrompt: string): Message[] {
  const parts = [
    ...(systemPrompt === "" ? [] : [`# Instructions\n\n${systemPrompt}`]),
    ...(tools.length === 0 ? [] : [harmonyDeclaration(tools)]),
  ];
  return [
    ...(tools.length === 0 ? [] : [{ role: builtIn, content: routing }]),
    ...(parts.length === 0 ? [] : [{ role: "developer", content: parts.join("\n\n") }]),
  ];
}

function today(): string {
  const now = new Date();
  const two = (value: number) => String(value).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}
