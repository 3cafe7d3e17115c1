import type { ParsedResponse, StreamEvent, StreamingParser } from "../renderer.js";
import { readResponse, type ReadingContext } from "./read-response.js";

/**
 * Parses an answer while it is sampled.
 *
 * - One header comes first, with the first text; deltas carry only what is new.
 * - Entering and leaving a think block each add one to the index of the content.
 * - The beginning of a tag is held back until it turns out not to be one.
 * - Tokens after the stop token are ignored.
 */
export class StreamingReader implements StreamingParser {
  readonly #context: ReadingContext;
  readonly #decoder: { push(id: number): string; flush(): string };
  readonly #tags: readonly [open: string, close: string];
  readonly #tokens: number[] = [];
  #pending = "";
  #isThinking = false;
  #index = 0;
  #isFinished = false;
  #hasHeader = false;
  /** The prompt's part of a think block; not needed if the model opens the block itself. */
  readonly #opening: readonly number[];
  readonly #held: number[] = [];
  #isOpened = false;
  #endsThinking = false;

  constructor(
    context: ReadingContext,
    tags: readonly [open: string, close: string],
    opening: readonly number[],
  ) {
    this.#context = context;
    this.#tags = tags;
    this.#opening = opening;
    this.#decoder = context.signs.decoder(context.tokenizer);
  }

  push(tokens: number | Iterable<number>): StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const id of typeof tokens === "number" ? [tokens] : tokens) {
      if (this.#isOpened) this.#take(id, events);
      else this.#open(id, events);
    }
    return events;
  }

  finish(): ParsedResponse & { events: StreamEvent[] } {
    const events: StreamEvent[] = [];
    if (!this.#isOpened && this.#held.length > 0) this.#release(this.#opening, events);
    this.#add(this.#decoder.flush(), events);
    this.#startHeader(events);
    this.#emit(this.#pending, events);
    this.#pending = "";
    const options = { always: true, endsThinking: this.#endsThinking };
    return { ...readResponse(this.#context, this.#tokens, options), events };
  }

  /** Holds the first tokens back as long as they match the block that the prompt has opened. */
  #open(id: number, events: StreamEvent[]): void {
    this.#held.push(id);
    const isSame = id === this.#opening[this.#held.length - 1];
    if (isSame && this.#held.length < this.#opening.length) return;
    this.#release(isSame ? [] : this.#opening, events);
  }

  #release(opening: readonly number[], events: StreamEvent[]): void {
    this.#isOpened = true;
    this.#endsThinking = opening.length > 0;
    for (const id of [...opening, ...this.#held]) this.#take(id, events);
  }

  #take(id: number, events: StreamEvent[]): void {
    this.#tokens.push(id);
    if (this.#isFinished) return;
    if (this.#context.stopIds.has(id)) this.#isFinished = true;
    else this.#add(this.#decoder.push(id), events);
  }

  #add(text: string, events: StreamEvent[]): void {
    if (text === "") return;
    this.#startHeader(events);
    this.#pending += text;
    for (;;) {
      const tag = this.#tags[this.#isThinking ? 1 : 0];
      const sign = this.#context.signs.sign(tag);
      const at = this.#pending.indexOf(sign);
      if (at < 0) break;
      this.#emit(this.#pending.slice(0, at), events);
      this.#pending = this.#pending.slice(at + sign.length);
      this.#isThinking = !this.#isThinking;
      this.#index++;
    }
    const held = heldBack(this.#pending, this.#tags[this.#isThinking ? 1 : 0]);
    this.#emit(this.#pending.slice(0, this.#pending.length - held), events);
    this.#pending = this.#pending.slice(this.#pending.length - held);
  }

  #startHeader(events: StreamEvent[]): void {
    if (!this.#hasHeader) events.push({ type: "header", role: "assistant" });
    this.#hasHeader = true;
  }

  #emit(text: string, events: StreamEvent[]): void {
    if (text === "") return;
    const type = this.#isThinking ? "thinking" : "text";
    events.push({ type, contentIndex: this.#index, delta: this.#context.signs.spell(text) });
  }
}

/** Length of the longest suffix of a text that may begin a tag. */
function heldBack(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
