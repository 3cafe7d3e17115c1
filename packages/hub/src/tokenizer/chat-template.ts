import { HubError } from "../errors.js";
import { isObject, type JsonObject } from "../files/json.js";
import { compileTemplate, type CompiledTemplate } from "./jinja.js";
import type { EncodeOptions } from "./token-encoder.js";

/** One message of a conversation; templates may read more fields than these two. */
export interface ChatMessage {
  /** The role: `system`, `user`, `assistant`, `tool`. */
  readonly role: string;
  /** The content: text, or parts in the form the template expects. */
  readonly content?: unknown;
  /** Other fields that the template reads, such as `tool_calls`. */
  readonly [field: string]: unknown;
}

/** Variables of a chat template besides the messages. */
export interface RenderChatOptions {
  /** End with the opening of the assistant's next turn. @default false */
  readonly addGenerationPrompt?: boolean;
  /** Functions that the model may call, in the form its template expects. */
  readonly tools?: readonly unknown[];
  /** Name of the template, for models that have several. @default "default" */
  readonly template?: string;
  /** Further variables of the template, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** A model's chat templates by name; most models have the one named "default", many have none. */
export type ChatTemplates = ReadonlyMap<string, string>;

/** Collects templates from `tokenizer_config.json` and `chat_template.jinja`; the separate file wins. */
export function collectChatTemplates(
  config: JsonObject | null,
  jinjaFile: string | null,
): ChatTemplates {
  const templates = new Map<string, string>();
  const inConfig = config?.["chat_template"];
  if (typeof inConfig === "string") templates.set("default", inConfig);
  if (Array.isArray(inConfig)) {
    for (const entry of inConfig) {
      if (!isObject(entry)) continue;
      const { name, template } = entry;
      if (typeof name === "string" && typeof template === "string") templates.set(name, template);
    }
  }
  if (jinjaFile !== null) templates.set("default", jinjaFile);
  return templates;
}

/** One chat template of a model, ready to render. */
export class ChatTemplate {
  /** The template as in the model's files. */
  readonly source: string;
  readonly #render: CompiledTemplate;
  readonly #specialTokens: Readonly<Record<string, string>>;
  readonly #encoder: ChatEncoder;
  readonly #quoter: MarkQuoter;

  private constructor(
    source: string,
    render: CompiledTemplate,
    specialTokens: Readonly<Record<string, string>>,
    encoder: ChatEncoder,
  ) {
    this.source = source;
    this.#render = render;
    this.#specialTokens = specialTokens;
    this.#encoder = encoder;
    this.#quoter = new MarkQuoter(encoder.addedTokens.keys());
  }

  /** Reads a template; the template engine is loaded with the first one. */
  static async compile(
    templates: ChatTemplates,
    name: string,
    specialTokens: Readonly<Record<string, string>>,
    encoder: ChatEncoder,
  ): Promise<ChatTemplate> {
    const source = chooseTemplate(templates, name);
    const render = await compileTemplate(source).catch((cause: unknown) => {
      throw templateFailed(cause);
    });
    return new ChatTemplate(source, render, specialTokens, encoder);
  }

  /** Renders a conversation so that it can be encoded without any of its texts becoming a special token. */
  render(messages: readonly ChatMessage[], options: RenderChatOptions = {}): RenderedChat {
    const quoted = this.#quoter.quote({ messages, tools: options.tools ?? null });
    const text = this.renderText(quoted as { messages: readonly ChatMessage[] }, options);
    return new RenderedChat({ text, quoter: this.#quoter, encoder: this.#encoder });
  }

  /** Renders messages and tools to a text, just as they are. */
  renderText(
    conversation: { messages: readonly ChatMessage[]; tools?: readonly unknown[] | null },
    options: Omit<RenderChatOptions, "tools"> = {},
  ): string {
    try {
      return this.#render({
        ...this.#specialTokens,
        tools: null,
        ...conversation,
        documents: null,
        add_generation_prompt: options.addGenerationPrompt ?? false,
        ...options.variables,
      });
    } catch (cause) {
      throw templateFailed(cause);
    }
  }
}

function templateFailed(cause: unknown): HubError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new HubError("chat_template_failed", `The chat template failed: ${reason}`, { cause });
}

function chooseTemplate(templates: ChatTemplates, name: string): string {
  const source = templates.get(name);
  if (source !== undefined) return source;
  const known = [...templates.keys()].join(", ");
  throw new HubError(
    "no_chat_template",
    templates.size === 0
      ? "The model has no chat template: write the prompt as text."
      : `The model has no chat template "${name}"; it has ${known}.`,
  );
}

/** The part of a tokenizer that encodes a rendered conversation. */
export interface ChatEncoder {
  readonly addedTokens: ReadonlyMap<string, number>;
  encode(text: string, options: EncodeOptions): Int32Array;
}

// A template does not distinguish the marks that it writes from the same characters in a message.
// So texts that spell a mark, or end with the beginning of one, get a sign behind its first character
// before the template sees them. Any mark left in the output was written by the template. A stretch of
// text with signs in it is encoded without them and without looking for marks.
//
// The sign is two non-characters of Unicode, for which no text has a use; a text that has the first of them
// all the same gets another behind it, so that taking the signs out gives every text back.
const sign = "\ufdd0\ufdd2";
const anySign = /\ufdd0([\ufdd1\ufdd2])/g;

/** Makes the texts of a conversation safe for a template. */
export class MarkQuoter {
  readonly #anyMark: RegExp | null;
  /** Every beginning of a mark that is not the whole of it. */
  readonly #beginnings = new Set<string>();
  readonly #longest: number;

  constructor(marks: Iterable<string>) {
    const longestFirst = [...marks]
      .filter((mark) => mark.length > 1 && mark.trim() !== "")
      .toSorted((a, b) => b.length - a.length);
    this.#longest = longestFirst[0]?.length ?? 0;
    this.#anyMark =
      longestFirst.length === 0 ? null : new RegExp(longestFirst.map(escape).join("|"), "g");
    for (const mark of longestFirst) {
      for (let end = 1; end < mark.length; end++) this.#beginnings.add(mark.slice(0, end));
    }
  }

  /** A value with every text in it quoted. */
  quote(value: unknown): unknown {
    if (typeof value === "string") return this.#quoteText(value);
    if (Array.isArray(value)) return value.map((item) => this.quote(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [this.#quoteText(key), this.quote(item)]),
    );
  }

  /** Splits a rendered text into alternating text and marks of the template. */
  splitAtMarks(text: string): string[] {
    if (!this.#anyMark) return [text];
    const parts: string[] = [];
    let end = 0;
    for (const { 0: mark, index } of text.matchAll(this.#anyMark)) {
      parts.push(text.slice(end, index), mark);
      end = index + mark.length;
    }
    parts.push(text.slice(end));
    return parts;
  }

  #quoteText(text: string): string {
    if (!this.#anyMark) return text;
    const escaped = text.replaceAll("\ufdd0", "\ufdd0\ufdd1");
    return this.#quoteEnd(
      escaped.replaceAll(this.#anyMark, (mark) => mark[0] + sign + mark.slice(1)),
    );
  }

  /** Two adjacent texts must not form a mark either. */
  #quoteEnd(text: string): string {
    let result = text;
    for (let length = 1; length < Math.min(this.#longest, text.length + 1); length++) {
      if (!this.#beginnings.has(text.slice(-length))) continue;
      const place = text.length - length + 1;
      result = result.slice(0, place) + sign + result.slice(place);
    }
    return result;
  }
}

/** A rendered conversation, which distinguishes the template's marks from text that spells them. */
export class RenderedChat {
  readonly #text: string;
  readonly #quoter: MarkQuoter;
  readonly #encoder: ChatEncoder;

  constructor(parts: { text: string; quoter: MarkQuoter; encoder: ChatEncoder }) {
    this.#text = parts.text;
    this.#quoter = parts.quoter;
    this.#encoder = parts.encoder;
  }

  /** Number of characters, with the signs that keep text apart from marks. */
  get length(): number {
    return this.#text.length;
  }

  /** Length of the common prefix of two renderings. */
  commonLength(other: RenderedChat): number {
    const end = Math.min(this.#text.length, other.#text.length);
    let length = 0;
    while (length < end && this.#text[length] === other.#text[length]) length++;
    return length;
  }

  /** A part of the text. */
  slice(start: number, end?: number): RenderedChat {
    return new RenderedChat({
      text: this.#text.slice(start, end),
      quoter: this.#quoter,
      encoder: this.#encoder,
    });
  }

  /** The position of a message's text from `start` on; -1 if absent. */
  indexOfText(text: string, start = 0): number {
    return this.#text.indexOf(String(this.#quoter.quote(text)), start);
  }

  /** The position of the template's next mark from `start` on; -1 if there is none. */
  indexOfMark(mark: string, start = 0): number {
    return this.#text.indexOf(mark, start);
  }

  /** The first mark that the template wrote, from `start` on. */
  firstMark(start = 0): string | undefined {
    return this.#quoter.splitAtMarks(this.#text.slice(start))[1];
  }

  /** The text as the template would have written it without quoting. */
  toString(): string {
    return withoutSigns(this.#text);
  }

  /** The tokens; text of the messages never becomes a special token. */
  encode(): Int32Array {
    const asIs = { addSpecialTokens: false };
    if (!this.#text.includes("\ufdd0")) return this.#encoder.encode(this.#text, asIs);
    const ids: number[] = [];
    let pending = "";
    const flush = () => {
      for (const id of pending === "" ? [] : this.#encoder.encode(pending, asIs)) ids.push(id);
      pending = "";
    };
    for (const part of this.#quoter.splitAtMarks(this.#text)) {
      if (!part.includes("\ufdd0")) {
        pending += part;
        continue;
      }
      flush();
      const options = { ...asIs, splitAddedTokens: true };
      for (const id of this.#encoder.encode(withoutSigns(part), options)) ids.push(id);
    }
    flush();
    return Int32Array.from(ids);
  }
}

function withoutSigns(text: string): string {
  return text.replaceAll(anySign, (_, second) => (second === "\ufdd1" ? "\ufdd0" : ""));
}

function escape(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
