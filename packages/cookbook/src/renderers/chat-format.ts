import type { ModelInputChunkInput } from "tinker-ts";
import type { Markup } from "./markup.js";
import type { Message, ToolSpec } from "./message.js";
import type { ResponseReader } from "./parsing/response-reader.js";

/** The position of a message when it is rendered. */
export interface MessagePlace {
  /** Position in the conversation, inserted messages included. */
  readonly index: number;
  /** Whether no message follows. */
  readonly isLast: boolean;
  /** Whether it is the last message of a training example, which a model is to learn to write. */
  readonly isTarget: boolean;
  readonly previous: Message | undefined;
  readonly next: Message | undefined;
  /** Position of the last message of the user; -1 without one. */
  readonly lastUserIndex: number;
  readonly inLastAssistantTurn: boolean;
}

/** A picture among the markup of a message. */
export type ImagePiece = Extract<ModelInputChunkInput, { data: unknown }>;

/** Markup inside a message that is context and never written by a model. */
export interface GivenPiece {
  readonly given: Markup;
}

/** Each piece becomes one chunk: tokens are never joined across pieces. */
export type OutputPiece = Markup | ImagePiece | GivenPiece;

/** A message in a model's format. */
export interface RenderedMessage {
  /** The header of the message; a model never writes it. */
  readonly header: Markup;
  /** The model's output, including its end. */
  readonly output: readonly OutputPiece[];
  /** The common part of the stop sequence and the next header; written after the last message only. */
  readonly stopOverlap?: Markup;
}

/**
 * Whether the prompt of a turn begins with the prompt and the answer of the turn before: `sometimes` means that it does if
 * every turn has reasoning.
 */
export type Extension = "always" | "sometimes" | "never";

/**
 * The chat format of a family of models. Writing is in `renderMessage` and `generationSuffix`,
 * reading is in `reader`; the other fields describe the format.
 */
export interface ChatFormat {
  readonly name: string;
  /** Tokens of the format. Text of messages never becomes one of them. */
  readonly marks: readonly string[];
  /** Tokens that the tokenizer must have; the others may be spelled as text. */
  readonly requiredMarks: readonly string[];
  /** The token before the first message. @default none */
  readonly begin?: "bos" | { readonly mark: string };
  /** The stop sequence of a message: tokens, or one text. */
  readonly stops: readonly string[] | { readonly text: string };
  readonly extension: Extension;
  /** Whether prompts close the think block. @default false */
  readonly disablesThinking?: boolean;
  /** Roles that messages may have. @default any word */
  readonly roles?: readonly string[];
  /** Adds messages that the format always has, such as a system message. */
  readonly prepare?: (messages: readonly Message[]) => readonly Message[];
  /** Where the last turn of the assistant begins. @default behind the last message of the user */
  readonly turnStart?: (messages: readonly Message[]) => number;
  /** One example per turn of the user instead of one per message, where turns cannot be joined. */
  readonly splitsByUserTurn?: boolean;
  readonly renderMessage: (message: Message, place: MessagePlace) => RenderedMessage;
  /** The end of a prompt. */
  readonly generationSuffix: (role: string, place: MessagePlace) => Markup;
  /** The part of the answer that the prompt writes, as one chunk with the caller's prefill. @default nothing */
  readonly opening?: (role: string, place: MessagePlace) => Markup;
  readonly reader: ResponseReader;
  /** The messages that declare functions; formats without them have none. */
  readonly declareTools?: (tools: readonly ToolSpec[], systemPrompt: string) => readonly Message[];
  /** How OpenAI-style messages carry reasoning and arguments. */
  readonly openAI: { readonly thinking: "field" | "inline"; readonly arguments: "text" | "object" };
}
