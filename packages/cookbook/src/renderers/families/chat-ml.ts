import { pythonStrip } from "@tinker-ts/hub";
import { ArgumentError } from "tinker-ts";
import type {
  ChatFormat,
  Extension,
  ImagePiece,
  MessagePlace,
  OutputPiece,
  RenderedMessage,
} from "../chat-format.js";
import { declarationMarkup, trimMarkup } from "../declared-tools.js";
import { findMarks, markupOf, type Markup } from "../markup.js";
import {
  contentParts,
  type ContentPart,
  type Message,
  type ToolCall,
  type ToolSpec,
} from "../message.js";
import { readTagged, type TaggedAnswers } from "../parsing/tagged-reader.js";

/** The marks of Qwen's format, which Nemotron shares. */
const marks = [
  "<|im_start|>",
  "<|im_end|>",
  "<|vision_start|>",
  "<|vision_end|>",
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
];

/** Fills texts into markup of this format. */
export const m = markupOf(marks);

/** Rules of one family of the format. Texts here are the renderer's own: marks in them are tokens. */
export interface ChatMlFamily {
  readonly name: string;
  readonly extension: Extension;
  readonly disablesThinking: boolean;
  /** The part of the think block in the prompt. */
  readonly prompt: string;
  /** Whether a message keeps its reasoning. */
  readonly keepsThinking: (place: MessagePlace) => boolean;
  /** The frame of reasoning, and the blanks to strip at its ends. */
  readonly block: (place: MessagePlace, message: Message) => ThinkBlock;
  /** The prefix of an assistant message without reasoning, or with dropped reasoning. */
  readonly emptyBlock: (message: Message, place: MessagePlace) => string;
  /** Whether the empty block is part of the header or of the model's output. */
  readonly emptyBlockIn: "header" | "output";
  /** The empty block in a trained turn, after the prompt's part. */
  readonly target?: string;
  /** Texts are stripped of outer blanks. @default false */
  readonly trims?: boolean;
  /** Whether the end of a message is a separate chunk. @default false */
  readonly endsApart?: boolean;
  /** Makes the chunk of a picture; pictures are refused without it. */
  readonly image?: (part: Extract<ContentPart, { type: "image" }>) => ImagePiece;
  readonly call: (call: ToolCall) => Markup;
  /** The text before the first call. */
  readonly beforeCalls: (message: Message, hasText: boolean) => string;
  /** The text after each call but the last, and after the last. */
  readonly afterCall: readonly [between: string, last: string];
  /** The end of a result, and the beginning of the next one in the same turn. */
  readonly result: readonly [end: string, next: string];
  readonly prepare?: (messages: readonly Message[]) => readonly Message[];
  /** Refuses a message that this family cannot write. */
  readonly check?: (message: Message, place: MessagePlace) => void;
  readonly declareTools: (tools: readonly ToolSpec[], systemPrompt: string) => readonly Message[];
  readonly answers: TaggedAnswers;
  readonly arguments: ChatFormat["openAI"]["arguments"];
}

/** The frame of reasoning. */
export interface ThinkBlock {
  readonly open: string;
  readonly close: string;
  /** @default "none" */
  readonly strips?: "lines" | "blanks" | "none";
  /** Text after the block is stripped of leading newlines. @default false */
  readonly joinsText?: boolean;
}

/** The chat format of a family. */
export function chatMl(family: ChatMlFamily): ChatFormat {
  return {
    name: family.name,
    marks,
    requiredMarks: ["<|im_start|>", "<|im_end|>"],
    stops: ["<|im_end|>"],
    extension: family.extension,
    disablesThinking: family.disablesThinking,
    ...(family.prepare ? { prepare: family.prepare } : {}),
    renderMessage: (message, place) => renderMessage(family, message, place),
    generationSuffix: (role, place) => [...header(role, place), ...own(family.prompt)],
    reader: {
      thinkTags: ["<think>", "</think>"],
      ...(family.emptyBlockIn === "header" && family.prompt !== ""
        ? { openThinking: "<think>\n" }
        : {}),
      read: (text, signs) => readTagged(text, signs, family.answers),
    },
    declareTools: family.declareTools,
    openAI: { thinking: "field", arguments: family.arguments },
  };
}

function renderMessage(
  family: ChatMlFamily,
  message: Message,
  place: MessagePlace,
): RenderedMessage {
  family.check?.(message, place);
  const isResult = message.role === "tool";
  const output = new Pieces();
  const begin = beginMessage(family, message, place);
  if (begin.apart !== "") output.addApart(own(begin.apart));
  output.add(own(begin.output));
  if (isResult) output.add(m`<tool_response>\n`);
  const hasText = addContent(family, message, place, output, begin.output !== "");
  if (isResult) output.add(own(family.result[0]));
  addCalls(family, message, output, hasText);
  // Results in a row share one turn.
  if (!isResult || place.next?.role !== "tool") {
    if (family.endsApart) output.addApart(m`<|im_end|>`);
    else output.add(m`<|im_end|>`);
  }
  return { header: begin.header, output: output.list };
}

/** The header, the part of the think block in a separate chunk before the content, and the part in the content's chunk. */
function beginMessage(
  family: ChatMlFamily,
  message: Message,
  place: MessagePlace,
): { header: Markup; apart: string; output: string } {
  if (message.role === "tool" && place.previous?.role === "tool") {
    return { header: own(family.result[1]), apart: "", output: "" };
  }
  const head = header(message.role, place);
  const empty = message.role === "assistant" ? family.emptyBlock(message, place) : "";
  if (empty === "" || family.emptyBlockIn === "output") {
    return { header: head, apart: "", output: empty };
  }
  const { prompt, target } = family;
  if (target !== undefined && place.isTarget) {
    return { header: [...head, ...own(prompt)], apart: target, output: "" };
  }
  // The current turn begins where the prompt ends.
  if (place.isLast && empty.startsWith(prompt)) {
    return { header: [...head, ...own(prompt)], apart: empty.slice(prompt.length), output: "" };
  }
  return { header: [...head, ...own(empty)], apart: "", output: "" };
}

/** Adds the parts of a message; returns whether there is text or a picture among them. */
function addContent(
  family: ChatMlFamily,
  message: Message,
  place: MessagePlace,
  output: Pieces,
  isBehindBlock: boolean,
): boolean {
  const keeps = message.role !== "assistant" || family.keepsThinking(place);
  const block = family.block(place, message);
  const declared = declarationMarkup(message);
  if (declared) {
    output.add(family.trims ? trimMarkup(declared) : declared);
    return true;
  }
  const trims = family.trims === true && typeof message.content === "string";
  let joins = isBehindBlock && block.joinsText === true;
  let hasText = false;
  for (const part of contentParts(message.content)) {
    if (part.type === "thinking") {
      if (!keeps) continue;
      output.add([...own(block.open), strip(part.thinking, block), ...own(block.close)]);
      joins = block.joinsText === true;
    } else if (part.type === "image") {
      output.add(m`<|vision_start|>`);
      output.addImage(pictureOf(family, part));
      output.add(m`<|vision_end|>`);
      joins = false;
      hasText = true;
    } else {
      const text = trims ? pythonStrip(part.text) : part.text;
      const joined = joins ? pythonStrip(text, "lstrip", "\n") : text;
      output.add([joined]);
      hasText ||= joined !== "";
      joins = false;
    }
  }
  return hasText;
}

function addCalls(family: ChatMlFamily, message: Message, output: Pieces, hasText: boolean): void {
  const calls = message.toolCalls ?? [];
  if (calls.length === 0) return;
  output.add([family.beforeCalls(message, hasText)]);
  const [between, last] = family.afterCall;
  for (const [index, call] of calls.entries()) {
    output.add(family.call(call));
    output.add([index < calls.length - 1 ? between : last]);
  }
}

function header(role: string, place: MessagePlace): Markup {
  const name = role === "tool" ? "user" : role;
  return place.index > 0 ? m`\n<|im_start|>${name}\n` : m`<|im_start|>${name}\n`;
}

function strip(thinking: string, { strips }: ThinkBlock): string {
  if (strips === "blanks") return pythonStrip(thinking);
  return strips === "lines" ? pythonStrip(thinking, "strip", "\n") : thinking;
}

function pictureOf(
  family: ChatMlFamily,
  part: Extract<ContentPart, { type: "image" }>,
): ImagePiece {
  if (family.image) return family.image(part);
  throw new ArgumentError("content", `the format of "${family.name}" has no pictures`);
}

const owned = new Map<string, Markup>();

/** A text of the format itself, with its marks found. */
function own(text: string): Markup {
  let markup = owned.get(text);
  if (!markup) owned.set(text, (markup = findMarks(text, marks)));
  return markup;
}

/** Pieces of a message; text is appended to the last one, so that it is encoded as one. */
class Pieces {
  readonly list: OutputPiece[] = [];

  add(markup: Markup): void {
    const last = this.list.at(-1);
    if (!last || !Array.isArray(last) || this.#isClosed) {
      this.list.push([...markup]);
      this.#isClosed = false;
    } else {
      this.list[this.list.length - 1] = [...last, ...markup];
    }
  }

  addApart(markup: Markup): void {
    this.list.push(markup);
    this.#isClosed = true;
  }

  addImage(image: ImagePiece): void {
    this.list.push(image);
  }

  #isClosed = false;
}
