import type { Message } from "../message.js";
import type { RendererTokenizer, Termination } from "../renderer.js";
import type { MarkSigns } from "./marked-text.js";
import type { ResponseReader } from "./response-reader.js";

/** Parts of a format and a tokenizer that parsing needs. */
export interface ReadingContext {
  readonly reader: ResponseReader;
  readonly signs: MarkSigns;
  readonly tokenizer: RendererTokenizer;
  /** Ids of the tokens that end a message. */
  readonly stopIds: ReadonlySet<number>;
}

/** Options of parsing an answer. */
export interface ReadingOptions {
  /** Parse blocks even without a stop token. */
  readonly always: boolean;
  /** Treat a think block that was cut off as reasoning instead of text. */
  readonly endsThinking: boolean;
}

/**
 * Parses a complete answer. Without a stop token its boundary is unknown, and so is
 * whether its blocks are complete: then the content is the plain text, unless parsing is forced.
 */
export function readResponse(
  context: ReadingContext,
  tokens: readonly number[],
  { always, endsThinking }: ReadingOptions,
): { message: Message; termination: Termination } {
  const { reader, signs, tokenizer, stopIds } = context;
  const stops = tokens.filter((id) => stopIds.has(id));
  const isClean = stops.length > 0 && new Set(stops).size === stops.length;
  const end = tokens.findIndex((id) => stopIds.has(id));
  const text = signs.decode(tokenizer, end < 0 ? tokens : tokens.slice(0, end));
  const close = signs.sign(reader.thinkTags?.[1] ?? "");
  const whole = endsThinking && close !== "" && !text.includes(close) ? text + close : text;
  const message: Message =
    isClean || always
      ? reader.read(whole, signs)
      : { role: "assistant", content: signs.spell(text) };
  return { message, termination: isClean ? "stop_sequence" : "malformed" };
}
