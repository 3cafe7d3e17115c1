import { randomBytes } from "node:crypto";
import type { StopReason } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import type { SectionEvent } from "../sections/section-event.js";
import { SectionReader, type SectionOptions } from "../sections/section-reader.js";
import { ChoiceText, type EndRules } from "./choice-text.js";

/** A tool call, or a delta of one. */
export interface CallDelta {
  readonly index: number;
  readonly id?: string;
  readonly type?: "function";
  readonly function: { readonly name?: string; readonly arguments: string };
}

/** The delta of an answer. */
export type ChatDelta =
  | { readonly kind: "content" | "reasoning"; readonly text: string }
  | { readonly kind: "call"; readonly call: CallDelta };

/** A call of a finished answer. */
export interface FinishedCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** The finish reason of an answer. */
export type FinishReason = "stop" | "length" | "tool_calls";

/** Options of parsing one answer. */
export interface ChatChoiceOptions {
  readonly tokenizer: Tokenizer;
  readonly ends: EndRules;
  readonly sections: SectionOptions;
  /** Only the first call counts when false. */
  readonly isParallel: boolean;
  /** A call of a named tool ends an answer like a text does. */
  readonly isNamed: boolean;
}

interface OpenCall {
  readonly id: string;
  readonly name: string;
  arguments: string;
}

/** One answer in progress: from tokens to deltas, and finally to the complete message. */
export class ChatChoice {
  readonly #options: ChatChoiceOptions;
  readonly #text: ChoiceText;
  readonly #sections: SectionReader;
  readonly #calls: OpenCall[] = [];
  #deltas: ChatDelta[] = [];
  #ignoresCall = false;
  #content = "";
  #reasoning = "";
  #reasoningTokens = 0;
  #count = 0;

  constructor(options: ChatChoiceOptions) {
    this.#options = options;
    this.#text = new ChoiceText(options.tokenizer, options.ends);
    this.#sections = new SectionReader(options.sections, (event) => this.#take(event));
  }

  get stopReason(): string | number | null {
    return this.#text.stopReason;
  }

  /** Tokens of the thoughts, their marks included. */
  get reasoningTokens(): number {
    return this.#reasoningTokens;
  }

  /** Tokens so far. */
  get tokens(): number {
    return this.#count;
  }

  get content(): string {
    return this.#content;
  }

  get reasoning(): string {
    return this.#reasoning;
  }

  get calls(): readonly FinishedCall[] {
    return this.#calls.map(({ id, name, arguments: text }) => ({
      id,
      type: "function",
      function: { name, arguments: text },
    }));
  }

  /** Adds a token; returns the new delta. */
  push(token: number): readonly ChatDelta[] {
    const wasThinking = this.#sections.isThinking;
    this.#count += 1;
    this.#sections.push(this.#text.push(token));
    if (wasThinking || this.#sections.isThinking) this.#reasoningTokens += 1;
    return this.#takeDeltas();
  }

  /** Ends the answer; returns the held-back delta. */
  finish(): readonly ChatDelta[] {
    this.#sections.push(this.#text.finish());
    this.#sections.end();
    return this.#takeDeltas();
  }

  /** The finish reason, from the engine's stop reason. */
  finishReason(stopReason: StopReason): FinishReason {
    if (stopReason === "length") return "length";
    return this.#calls.length > 0 && !this.#options.isNamed ? "tool_calls" : "stop";
  }

  /** The complete message. */
  message(): object {
    const { calls } = this;
    return {
      role: "assistant",
      content: this.#content === "" && calls.length > 0 ? null : this.#content,
      refusal: null,
      ...(this.#reasoning === "" ? {} : { reasoning_content: this.#reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
  }

  #take(event: SectionEvent): void {
    switch (event.kind) {
      case "content":
        this.#content += event.text;
        this.#deltas.push(event);
        break;
      case "reasoning":
        this.#reasoning += event.text;
        this.#deltas.push(event);
        break;
      case "call":
        this.#ignoresCall = this.#calls.length > 0 && !this.#options.isParallel;
        if (!this.#ignoresCall) this.#beginCall(event.name);
        break;
      case "arguments":
        if (!this.#ignoresCall) this.#continueCall(event.text);
        break;
    }
  }

  #beginCall(name: string): void {
    const id = `call_${randomBytes(12).toString("hex")}`;
    const index = this.#calls.push({ id, name, arguments: "" }) - 1;
    const call = { index, id, type: "function", function: { name, arguments: "" } } as const;
    this.#deltas.push({ kind: "call", call });
  }

  #continueCall(text: string): void {
    const index = this.#calls.length - 1;
    this.#calls[index]!.arguments += text;
    this.#deltas.push({ kind: "call", call: { index, function: { arguments: text } } });
  }

  #takeDeltas(): readonly ChatDelta[] {
    const deltas = this.#deltas;
    this.#deltas = [];
    return deltas;
  }
}
