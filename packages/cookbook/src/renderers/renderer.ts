import type { NamedTokens } from "@tinker-ts/hub";
import type { EncodeOptions, ModelInput } from "tinker-ts";
import type { Message, ToolSpec } from "./message.js";
import type { TrainOnWhat } from "./train-on-what.js";

/** The part of a tokenizer that renderers use; a `Tokenizer` has it. */
export interface RendererTokenizer {
  readonly namedTokens: Pick<NamedTokens, "bos" | "eos">;
  encode(text: string, options?: EncodeOptions): Int32Array;
  decode(ids: Iterable<number>): string;
  incrementalDecoder(): { push(ids: number): string; flush(): string };
  tokenToId(token: string): number | null;
}

/** A conversation as tokens with weights. */
export interface SupervisedExample {
  /** The whole conversation, not yet shifted into input and targets. */
  readonly input: ModelInput;
  /** One weight per position of `input`: 1 for a token to learn, 0 for context. */
  readonly weights: Float32Array;
}

/** How a sampled message ended: at its stop sequence, at the end of text, or malformed. */
export type Termination = "stop_sequence" | "eos" | "malformed";

/** A sampled message. */
export interface ParsedResponse {
  readonly message: Message;
  readonly termination: Termination;
}

/** Options of parsing sampled tokens. */
export interface ParseOptions {
  /**
   * Whether the prompt ended inside an open think block. If set, reasoning that was cut off is
   * recognized as reasoning. @default whether the tokens contain the end of a block
   */
  readonly insideThinking?: boolean;
}

/** Events of a streaming parser; `contentIndex` grows with each change between text and reasoning. */
export type StreamEvent =
  | { readonly type: "header"; readonly role: string }
  | { readonly type: "text"; readonly contentIndex: number; readonly delta: string }
  | { readonly type: "thinking"; readonly contentIndex: number; readonly delta: string };

/**
 * Parses a message while it is sampled. Deltas are raw: the newlines that frame reasoning and the markup of
 * tool calls are in them and not in the message that `finish` returns.
 */
export interface StreamingParser {
  /** Adds tokens and returns their events. */
  push(tokens: number | Iterable<number>): StreamEvent[];
  /** Ends the message: returns the held-back events, and the message as `parseResponse` would parse it. */
  finish(): ParsedResponse & { readonly events: StreamEvent[] };
}

/** Options of a prompt. */
export interface GenerationPromptOptions {
  /** The role of the next message. @default "assistant" */
  readonly role?: string;
  /** Text that the answer begins with, after the format's own beginning. */
  readonly prefill?: string;
}

/** A model's chat format: messages to tokens and sampled tokens back to messages. */
export interface Renderer {
  readonly name: string;
  readonly tokenizer: RendererTokenizer;
  /**
   * Whether each prompt begins with the prompt and answer of the turn before, token for token. Then one
   * example trains all turns, and the cost of a conversation grows with its length only.
   */
  readonly hasExtensionProperty: boolean;
  /** Whether prompts disable reasoning. */
  readonly disablesThinking: boolean;
  /** Whether `streamingParser` can be used. */
  readonly supportsStreaming: boolean;
  /** The stop sequences for `samplingParams.stop`. */
  readonly stopSequences: number[] | string[];
  /** The prompt to sample the next message from. */
  buildGenerationPrompt(
    messages: readonly Message[],
    options?: GenerationPromptOptions,
  ): ModelInput;
  /** One conversation as one example. @default "last_assistant_message" */
  buildSupervisedExample(
    messages: readonly Message[],
    trainOnWhat?: TrainOnWhat,
  ): SupervisedExample;
  /**
   * One conversation as examples in which each trained message follows the prompt it would be sampled
   * from: one, or one per message where the format rewrites earlier turns. @default "last_assistant_turn"
   */
  buildSupervisedExamples(
    messages: readonly Message[],
    trainOnWhat?: TrainOnWhat,
  ): SupervisedExample[];
  /** Parses sampled tokens; never throws on malformed output. */
  parseResponse(tokens: Iterable<number>, options?: ParseOptions): ParsedResponse;
  /** Parses tokens while they are sampled. */
  streamingParser(options?: ParseOptions): StreamingParser;
  /** The messages that declare functions; they go before the conversation. */
  createConversationPrefixWithTools(tools: readonly ToolSpec[], systemPrompt?: string): Message[];
  /** The message in the form of OpenAI-style services and the model's own chat template. */
  toOpenAIMessage(message: Message): Record<string, unknown>;
}
