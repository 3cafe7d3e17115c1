import type { NamedTokens } from "@tinker-ts/hub";
import type { EncodeOptions, ModelInput } from "tinker-ts";
import type { Message, ToolSpec } from "./message.js";
import type { TrainOnWhat } from "./train-on-what.js";

/** What a renderer uses of a tokenizer; a `Tokenizer` is one. */
export interface RendererTokenizer {
  readonly namedTokens: Pick<NamedTokens, "bos" | "eos">;
  encode(text: string, options?: EncodeOptions): Int32Array;
  decode(ids: Iterable<number>): string;
  incrementalDecoder(): { push(ids: number): string; flush(): string };
  tokenToId(token: string): number | null;
}

/** A conversation as tokens, with what is to be learned of it. */
export interface SupervisedExample {
  /** The whole conversation, not yet shifted into input and targets. */
  readonly input: ModelInput;
  /** One weight per position of `input`: 1 for a token to learn, 0 for context. */
  readonly weights: Float32Array;
}

/** How a sampled message ended: at its stop sequence, at the end of text, or not as it should. */
export type Termination = "stop_sequence" | "eos" | "malformed";

/** A sampled message. */
export interface ParsedResponse {
  readonly message: Message;
  readonly termination: Termination;
}

/** How sampled tokens are read. */
export interface ParseOptions {
  /**
   * Whether the prompt ended inside an open think block. Where it is known, reasoning that was cut off is
   * recognized as reasoning. @default whether the tokens contain the end of a block
   */
  readonly insideThinking?: boolean;
}

/** What a streaming parser reports; `contentIndex` grows with each change between text and reasoning. */
export type StreamEvent =
  | { readonly type: "header"; readonly role: string }
  | { readonly type: "text"; readonly contentIndex: number; readonly delta: string }
  | { readonly type: "thinking"; readonly contentIndex: number; readonly delta: string };

/**
 * Reads a message while it is sampled. Deltas are raw: the newlines that frame reasoning and the markup of
 * tool calls are in them and not in the message that `finish` returns.
 */
export interface StreamingParser {
  /** Takes tokens and returns what they add. */
  push(tokens: number | Iterable<number>): StreamEvent[];
  /** Ends the message: the held-back events, and the message as `parseResponse` would read it. */
  finish(): ParsedResponse & { readonly events: StreamEvent[] };
}

/** How a prompt is built. */
export interface GenerationPromptOptions {
  /** Who speaks next. @default "assistant" */
  readonly role?: string;
  /** Text that the answer begins with; it stands behind what the format itself begins an answer with. */
  readonly prefill?: string;
}

/** A model's chat format: messages to tokens and sampled tokens back to messages. */
export interface Renderer {
  readonly name: string;
  readonly tokenizer: RendererTokenizer;
  /**
   * Whether each prompt begins with the prompt and the answer of the turn before, token for token. Then one
   * example trains all turns, and the cost of a conversation grows with its length only.
   */
  readonly hasExtensionProperty: boolean;
  /** Whether prompts tell the model not to reason. */
  readonly disablesThinking: boolean;
  /** Whether `streamingParser` can be used. */
  readonly supportsStreaming: boolean;
  /** Where sampling must stop; goes into `samplingParams.stop`. */
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
   * One conversation as examples in which each trained message stands behind the prompt it would be sampled
   * from: one, or one per message where the format rewrites earlier turns. @default "last_assistant_turn"
   */
  buildSupervisedExamples(
    messages: readonly Message[],
    trainOnWhat?: TrainOnWhat,
  ): SupervisedExample[];
  /** Reads sampled tokens; never throws for what a model wrote. */
  parseResponse(tokens: Iterable<number>, options?: ParseOptions): ParsedResponse;
  /** Reads tokens while they are sampled. */
  streamingParser(options?: ParseOptions): StreamingParser;
  /** The messages that tell the model about functions; they go before the conversation. */
  createConversationPrefixWithTools(tools: readonly ToolSpec[], systemPrompt?: string): Message[];
  /** The message as OpenAI-style services and the model's own chat template take it. */
  toOpenAIMessage(message: Message): Record<string, unknown>;
}
