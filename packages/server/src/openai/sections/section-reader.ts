import type { Tool } from "../request/chat-request.js";
import { CallMarkup } from "./call-markup.js";
import { CallObject } from "./call-object.js";
import type { SectionEvent } from "./section-event.js";
import { overlap } from "./stop-cutter.js";
import type { CallFormat, ThinkingMarks } from "../../structure/answer-grammar.js";

/** Options of a section reader. */
export interface SectionOptions {
  readonly format: AnswerFormat;
  /** Whether thoughts are separated from the answer. */
  readonly separatesReasoning: boolean;
  /** Whether the prompt has opened the thoughts. */
  readonly startsThinking: boolean;
  /** Tools that may be called; without any, calls are text. */
  readonly tools: readonly Tool[];
}

type Call = CallObject | CallMarkup;

const pythonTag = "<|python_tag|>";
const callOpen = "<tool_call>";
const callClose = "</tool_call>";
const listOpen = "[TOOL_CALLS]";
const argumentsMark = "[ARGS]";

/**
 * Divides the text of an answer into thoughts, content and calls while it comes.
 *
 * - `start`: only white space so far; thoughts may begin.
 * - `thinking`: until their closing mark.
 * - `content`: until the mark that opens a call.
 * - `call`: a call is being read; text that turns out not to be one becomes content.
 * - `tail`: after a call, until its closing mark.
 *
 * Only a possible beginning of a mark is held back, and white space before it.
 * Streamed and complete answers use the same reader.
 */
export class SectionReader {
  readonly #options: SectionOptions;
  readonly #emit: (event: SectionEvent) => void;
  #state: "start" | "thinking" | "content" | "call" | "tail" = "start";
  #held = "";
  #call: Call | null = null;
  /** Text before the current call that belongs to it. */
  #callPrefix = "";
  #isInList = false;
  #hasThoughts = false;
  /** White space after thoughts and between calls is not content. */
  #skipsSpace = false;
  /** Whether a call may begin without a mark. */
  #mayBeBare: boolean;

  constructor(options: SectionOptions, emit: (event: SectionEvent) => void) {
    this.#options = options;
    this.#emit = emit;
    this.#mayBeBare = options.tools.length > 0 && options.format.calls === "bare";
    if (options.startsThinking && options.separatesReasoning) this.#state = "thinking";
  }

  /** Whether the next text belongs to the thoughts. */
  get isThinking(): boolean {
    return this.#state === "thinking";
  }

  /** Adds text. */
  push(text: string): void {
    this.#held += text;
    while (this.#held !== "" && this.#step()) continue;
  }

  /** Ends the text and emits the held-back part. */
  end(): void {
    if (this.#call !== null) {
      const call = this.#call;
      this.#call = null;
      if (!call.wasTold) this.#content(this.#callPrefix + call.text);
      this.#state = "content";
    }
    if (this.#state === "thinking") this.#reasoning(this.#held.trimEnd());
    else if (this.#state !== "tail") this.#content(this.#held);
    this.#held = "";
  }

  /** Processes the pending text; false if more is needed. */
  #step(): boolean {
    switch (this.#state) {
      case "start":
        return this.#start();
      case "thinking":
        return this.#thinking();
      case "content":
        return this.#inContent();
      case "call":
        return this.#inCall();
      case "tail":
        return this.#tail();
    }
  }

  #start(): boolean {
    const { format, separatesReasoning } = this.#options;
    const text = this.#held.trimStart();
    if (text === "") return false;
    const open = separatesReasoning ? format.thinking?.open : undefined;
    if (open !== undefined) {
      if (text.startsWith(open)) {
        this.#held = text.slice(open.length);
        this.#state = "thinking";
        return true;
      }
      if (open.startsWith(text)) return false;
    }
    this.#state = "content";
    return true;
  }

  #thinking(): boolean {
    const close = this.#options.format.thinking?.close ?? "";
    const end = this.#held.indexOf(close);
    if (end >= 0) {
      this.#reasoning(this.#held.slice(0, end).trimEnd());
      this.#held = this.#held.slice(end + close.length);
      this.#skipsSpace = true;
      this.#state = "content";
      return true;
    }
    const keep = Math.max(overlap(this.#held, close), trailingSpace(this.#held, close));
    const certain = this.#held.slice(0, this.#held.length - keep);
    this.#reasoning(certain);
    this.#held = this.#held.slice(certain.length);
    return false;
  }

  #inContent(): boolean {
    if (this.#skipsSpace) this.#held = this.#held.trimStart();
    if (this.#held === "") return false;
    if (this.#options.tools.length === 0) return this.#takeAll();
    if (this.#mayBeBare) {
      const text = this.#held.trimStart();
      if (text === "") return false;
      if (text.startsWith("{")) return this.#beginCall(this.#newObject(), "", text);
      if (text.startsWith(pythonTag)) {
        const inside = text.slice(pythonTag.length);
        return this.#beginCall(this.#newObject(), pythonTag, inside);
      }
      if (pythonTag.startsWith(text)) return false;
      this.#mayBeBare = false;
    }
    const mark = this.#options.format.calls === "listed" ? listOpen : callOpen;
    const start = this.#held.indexOf(mark);
    if (start >= 0) {
      const before = this.#held.slice(0, start).trimEnd();
      this.#content(before);
      this.#callPrefix = this.#held.slice(before.length, start) + mark;
      this.#isInList = false;
      this.#state = "call";
      this.#held = this.#held.slice(start + mark.length);
      return this.#held !== "";
    }
    const keep = Math.max(overlap(this.#held, mark), trailingSpace(this.#held, mark));
    const certain = this.#held.slice(0, this.#held.length - keep);
    this.#content(certain);
    this.#held = this.#held.slice(certain.length);
    return false;
  }

  #beginCall(call: Call, prefix: string, text: string): boolean {
    this.#call = call;
    this.#callPrefix = prefix;
    this.#state = "call";
    this.#held = text;
    return true;
  }

  #inCall(): boolean {
    if (this.#call === null) {
      const started = this.#startCall();
      if (!started) return false;
    }
    const call = this.#call;
    if (call === null) return true;
    const rest = call.push(this.#held, this.#emit);
    this.#held = rest;
    if (call.state === "open") return false;
    this.#call = null;
    if (call.state === "failed") {
      // A call that has been reported cannot be undone.
      if (!call.wasTold) {
        this.#content(this.#callPrefix + call.text);
        if (call instanceof CallMarkup) this.#held = "";
      }
      this.#mayBeBare = false;
      this.#isInList = false;
      this.#state = call.wasTold ? "tail" : "content";
      return this.#held !== "";
    }
    this.#skipsSpace = true;
    this.#state = "tail";
    return this.#held !== "";
  }

  /** Detects the notation of a call by its first characters; false if more is needed. */
  #startCall(): boolean {
    const text = this.#held.trimStart();
    if (text === "") {
      this.#callPrefix += this.#held;
      this.#held = "";
      return false;
    }
    if (this.#options.format.calls === "listed") return this.#startListed(text);
    if ("<function=".startsWith(text.slice(0, 10)) && text[0] === "<") {
      this.#call = new CallMarkup((name) => {
        const tool = this.#options.tools.find((one) => one.name === name);
        return tool === undefined ? undefined : tool.parameters;
      });
    } else {
      this.#call = this.#newObject();
    }
    this.#callPrefix += this.#held.slice(0, this.#held.length - text.length);
    this.#held = text;
    return true;
  }

  #startListed(text: string): boolean {
    if (text.startsWith("[")) {
      this.#isInList = true;
      this.#callPrefix += "[";
      this.#held = text.slice(1);
      if (this.#held === "") return false;
      return this.#startCall();
    }
    if (text.startsWith("{")) {
      this.#call = this.#newObject();
      this.#held = text;
      return true;
    }
    // A name, a mark, and the arguments.
    const brace = text.indexOf("{");
    if (brace < 0) {
      if (text.length > 200) {
        this.#content(this.#callPrefix + text);
        this.#held = "";
        this.#state = "content";
      }
      return false;
    }
    const name = text.slice(0, brace).replace(argumentsMark, "").trim();
    this.#call = CallObject.named(name, text.slice(0, brace), this.#isTool);
    this.#held = text.slice(brace);
    return true;
  }

  #tail(): boolean {
    const { calls } = this.#options.format;
    const text = this.#held.trimStart();
    if (text === "") return false;
    if (calls === "tagged") {
      const end = this.#held.indexOf(callClose);
      if (end < 0) {
        this.#held = this.#held.slice(this.#held.length - overlap(this.#held, callClose));
        return false;
      }
      this.#held = this.#held.slice(end + callClose.length);
      this.#state = "content";
      return this.#held !== "";
    }
    if (this.#isInList && text[0] === ",") {
      this.#held = text.slice(1);
      this.#callPrefix = ",";
      this.#state = "call";
      return this.#held !== "";
    }
    if (this.#isInList && text[0] === "]") {
      this.#isInList = false;
      this.#held = text.slice(1);
      this.#state = "content";
      return this.#held !== "";
    }
    if (calls === "bare" && text[0] === ";") {
      this.#held = text.slice(1);
      this.#state = "content";
      this.#mayBeBare = true;
      return this.#held !== "";
    }
    this.#held = text;
    this.#state = "content";
    return true;
  }

  #newObject(): CallObject {
    return new CallObject(this.#isTool);
  }

  readonly #isTool = (name: string): boolean =>
    this.#options.tools.some((tool) => tool.name === name);

  #takeAll(): boolean {
    this.#content(this.#held);
    this.#held = "";
    return false;
  }

  #reasoning(text: string): void {
    const output = this.#hasThoughts ? text : text.trimStart();
    if (output === "") return;
    this.#hasThoughts = true;
    this.#emit({ kind: "reasoning", text: output });
  }

  #content(text: string): void {
    const output = this.#skipsSpace ? text.trimStart() : text;
    if (output === "") return;
    this.#skipsSpace = false;
    this.#emit({ kind: "content", text: output });
  }
}

/** White space at the end, together with a possible beginning of a mark after it. */
function trailingSpace(text: string, mark: string): number {
  const keep = overlap(text, mark);
  const before = text.slice(0, text.length - keep);
  return text.length - before.trimEnd().length;
}

/** A model's notation of thoughts and calls, inferred from its template. */
export interface AnswerFormat {
  readonly calls: CallFormat;
  readonly thinking: ThinkingMarks | null;
}

/** Infers the notation from a template; `hasToken` checks the vocabulary. */
export function answerFormat(template: string, hasToken: (token: string) => boolean): AnswerFormat {
  const has = (mark: string): boolean => template.includes(mark) || hasToken(mark);
  const thinking = has("<think>")
    ? { open: "<think>", close: "</think>" }
    : has("[THINK]")
      ? { open: "[THINK]", close: "[/THINK]" }
      : null;
  return { calls: callFormat(template, hasToken), thinking };
}

function callFormat(template: string, hasToken: (token: string) => boolean): CallFormat {
  if (template.includes("<tool_call>")) return "tagged";
  if (template.includes("[TOOL_CALLS]")) return "listed";
  if (template.includes("python_tag") || template.includes('"parameters"')) return "bare";
  if (hasToken("[TOOL_CALLS]")) return "listed";
  return hasToken("<|python_tag|>") ? "bare" : "tagged";
}
