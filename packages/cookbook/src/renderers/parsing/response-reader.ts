import type { Message } from "../message.js";
import type { MarkSigns } from "./marked-text.js";

/** Rules for parsing a format's answers. */
export interface ResponseReader {
  /** The prompt's part of a think block, such as `<think>\n`. */
  readonly openThinking?: string;
  /** The tags of reasoning, for streaming; a format without them cannot be streamed. */
  readonly thinkTags?: readonly [open: string, close: string];
  /** Makes a message of a complete answer without its stop token; a marked text. */
  readonly read: (text: string, signs: MarkSigns) => Message;
}
