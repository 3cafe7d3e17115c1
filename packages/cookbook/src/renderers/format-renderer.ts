import type { ChatFormat, MessagePlace, OutputPiece, RenderedMessage } from "./chat-format.js";
import { checkMessages, checkRole, checkTrainable } from "./check-messages.js";
import { findMarks, MarkupEncoder } from "./markup.js";
import type { Message, ToolSpec } from "./message.js";
import { toOpenAIMessage } from "./openai-messages.js";
import { MarkSigns } from "./parsing/marked-text.js";
import { readResponse, type ReadingContext } from "./parsing/read-response.js";
import { StreamingReader } from "./parsing/streaming-reader.js";
import { RendererError } from "./renderer-error.js";
import type {
  GenerationPromptOptions,
  ParsedResponse,
  ParseOptions,
  Renderer,
  RendererTokenizer,
  StreamingParser,
  SupervisedExample,
  Termination,
} from "./renderer.js";
import { splitConversation } from "./split-conversation.js";
import {
  assembleExample,
  chunkLength,
  isTrained,
  type WeightedChunk,
} from "./supervised-example.js";
import type { TrainOnWhat } from "./train-on-what.js";
import { ModelInput, type ModelInputChunkInput } from "tinker-ts";

/** The renderer of a chat format with a model's tokenizer. */
export class FormatRenderer implements Renderer {
  readonly name: string;
  readonly tokenizer: RendererTokenizer;
  readonly hasExtensionProperty: boolean;
  readonly disablesThinking: boolean;
  readonly supportsStreaming: boolean;
  readonly stopSequences: number[] | string[];
  readonly #format: ChatFormat;
  readonly #encoder: MarkupEncoder;
  readonly #reading: ReadingContext;

  constructor(format: ChatFormat, tokenizer: RendererTokenizer) {
    const { name, marks, requiredMarks, stops, reader } = format;
    this.name = name;
    this.tokenizer = tokenizer;
    this.hasExtensionProperty = format.extension === "always";
    this.disablesThinking = format.disablesThinking ?? false;
    this.supportsStreaming = reader.thinkTags !== undefined;
    this.#format = format;
    this.#encoder = new MarkupEncoder(name, tokenizer, marks, requiredMarks);
    this.stopSequences =
      "text" in stops ? [stops.text] : stops.map((mark) => this.#encoder.idOf(mark)!);
    this.#reading = {
      reader,
      tokenizer,
      signs: new MarkSigns(marks, (mark) => this.#encoder.idOf(mark)),
      stopIds: new Set(this.stopSequences.filter((stop) => typeof stop === "number")),
    };
  }

  buildGenerationPrompt(
    messages: readonly Message[],
    options: GenerationPromptOptions = {},
  ): ModelInput {
    const { role = "assistant", prefill = "" } = options;
    checkMessages(messages, this.#format.roles);
    checkRole(role, "role", this.#format.roles);
    const prepared = this.#prepare(messages);
    const chunks = placesOf(prepared, this.#turnStart(prepared), false).flatMap((place) => {
      const { header, output } = this.#format.renderMessage(prepared[place.index]!, place);
      return [this.#encode(header), ...output.map((piece) => this.#encode(piece))];
    });
    const place = nextPlace(prepared);
    const suffix = this.#format.generationSuffix(role, place);
    const opening = [...(this.#format.opening?.(role, place) ?? []), prefill];
    return new ModelInput({
      chunks: [this.#begin(), ...chunks, this.#encode(suffix), this.#encode(opening)].filter(
        (chunk) => !("tokens" in chunk) || chunk.tokens.length > 0,
      ),
    });
  }

  buildSupervisedExample(
    messages: readonly Message[],
    trainOnWhat: TrainOnWhat = "last_assistant_message",
  ): SupervisedExample {
    return this.#buildExample(messages, trainOnWhat, "all");
  }

  #buildExample(
    messages: readonly Message[],
    trainOnWhat: TrainOnWhat,
    givenIn: "all" | "boundary",
  ): SupervisedExample {
    checkMessages(messages, this.#format.roles);
    checkTrainable(messages, trainOnWhat);
    const prepared = this.#prepare(messages);
    // The last message is trained, so the turn begins before it.
    const turnStart = this.#turnStart(prepared.slice(0, -1));
    const chunks: WeightedChunk[] = [{ chunk: this.#begin(), weight: 0 }];
    const headerWeight = trainOnWhat === "all_tokens" ? 1 : 0;
    for (const place of placesOf(prepared, turnStart, true)) {
      const message = prepared[place.index]!;
      const rendered = this.#format.renderMessage(message, place);
      const weight = isTrained(message, place, trainOnWhat) ? 1 : 0;
      const output = rendered.output.map((piece) => this.#encode(piece));
      if (place.isLast && rendered.stopOverlap) output.push(this.#encode(rendered.stopOverlap));
      chunks.push({ chunk: this.#encode(rendered.header), weight: headerWeight });
      const isAnswer = weight === 1 && message.role === "assistant" && headerWeight === 0;
      const given =
        isAnswer && (givenIn === "all" || isBoundary(prepared, place.index, trainOnWhat))
          ? this.#givenByPrompt(prepared, place.index, rendered, output, trainOnWhat)
          : 0;
      let left = given;
      for (const [at, chunk] of output.entries()) {
        const piece = rendered.output[at];
        const isGiven = piece !== undefined && "given" in piece;
        chunks.push({ chunk, weight: isGiven ? headerWeight : weight, given: left });
        left = Math.max(0, left - chunkLength(chunk));
      }
    }
    return assembleExample(chunks);
  }

  buildSupervisedExamples(
    messages: readonly Message[],
    trainOnWhat: TrainOnWhat = "last_assistant_turn",
  ): SupervisedExample[] {
    return splitConversation(
      {
        name: this.name,
        extension: this.#format.extension,
        splitsByUserTurn: this.#format.splitsByUserTurn ?? false,
        turnStart: (list) => this.#turnStart(list),
        // Conversations are split as the Python cookbook splits them: there only the message with which
        // training begins loses what its prompt has written.
        build: (list, mode) => this.#buildExample(list, mode, "boundary"),
      },
      messages,
      trainOnWhat,
    );
  }

  parseResponse(tokens: Iterable<number>, options: ParseOptions = {}): ParsedResponse {
    const { stops } = this.#format;
    const ids = [...tokens];
    if ("text" in stops) return readUntilText(this.tokenizer, stops.text, ids);
    const { insideThinking } = options;
    const opening = this.#opening(ids, insideThinking ?? this.#closesThinking(ids));
    return readResponse(this.#reading, [...opening, ...ids], {
      always: insideThinking !== undefined,
      endsThinking: insideThinking === true && opening.length > 0,
    });
  }

  streamingParser(options: ParseOptions = {}): StreamingParser {
    const { reader } = this.#format;
    if (!reader.thinkTags) {
      throw new RendererError(`The renderer "${this.name}" cannot read a message in parts.`);
    }
    const { insideThinking = reader.openThinking !== undefined } = options;
    return new StreamingReader(
      this.#reading,
      reader.thinkTags,
      insideThinking ? this.#openingIds() : [],
    );
  }

  createConversationPrefixWithTools(tools: readonly ToolSpec[], systemPrompt = ""): Message[] {
    if (this.#format.declareTools) return [...this.#format.declareTools(tools, systemPrompt)];
    throw new RendererError(
      `The format of "${this.name}" does not support tools. Use a model with a format that does.`,
    );
  }

  toOpenAIMessage(message: Message): Record<string, unknown> {
    return toOpenAIMessage(message, this.#format.openAI);
  }

  #prepare(messages: readonly Message[]): readonly Message[] {
    return this.#format.prepare?.(messages) ?? messages;
  }

  #turnStart(messages: readonly Message[]): number {
    return this.#format.turnStart?.(messages) ?? lastUserIndex(messages) + 1;
  }

  #begin(): ModelInputChunkInput {
    const { begin } = this.#format;
    if (begin === undefined) return { type: "encoded_text", tokens: [] };
    if (begin !== "bos") return this.#encode([begin]);
    const { bos } = this.tokenizer.namedTokens;
    return { type: "encoded_text", tokens: bos ? [bos.id] : [] };
  }

  #encode(piece: OutputPiece): ModelInputChunkInput {
    if ("data" in piece) return piece;
    if ("given" in piece) return this.#encode(piece.given);
    return { type: "encoded_text", tokens: this.#encoder.encode(piece) };
  }

  /**
   * Number of tokens of a trained message that the prompt already contains: a model is always given
   * them, so they are not trained.
   */
  #givenByPrompt(
    messages: readonly Message[],
    index: number,
    rendered: RenderedMessage,
    output: readonly ModelInputChunkInput[],
    trainOnWhat: TrainOnWhat,
  ): number {
    const place = nextPlace(messages.slice(0, index));
    const suffix = this.#encoder.encode([
      ...this.#format.generationSuffix("assistant", place),
      ...(this.#format.opening?.("assistant", place) ?? []),
    ]);
    const header = this.#encoder.encode(rendered.header);
    const written = [...header];
    for (const chunk of output) {
      if (!("tokens" in chunk) || written.length >= suffix.length) break;
      written.push(...chunk.tokens);
    }
    if (suffix.every((id, at) => written[at] === id)) {
      return Math.max(0, suffix.length - header.length);
    }
    if (this.disablesThinking && isBoundary(messages, index, trainOnWhat)) {
      throw new RendererError(
        `messages[${index}] does not begin like an answer to the prompt of "${this.name}": ` +
          "it reasons, or there is no message of the user before it. Remove its reasoning, or use a " +
          "renderer with thinking.",
      );
    }
    return 0;
  }

  #closesThinking(ids: readonly number[]): boolean {
    const { openThinking, thinkTags } = this.#format.reader;
    if (openThinking === undefined || !thinkTags) return false;
    const close = this.#encoder.idOf(thinkTags[1]);
    if (close !== undefined) return ids.includes(close);
    return this.tokenizer.decode(ids).includes(thinkTags[1]);
  }

  /** The part of a think block in the prompt, unless the answer has it itself. */
  #opening(ids: readonly number[], isInside: boolean): readonly number[] {
    const opening = isInside && ids.length > 0 ? this.#openingIds() : [];
    return opening.every((id, index) => ids[index] === id) ? [] : opening;
  }

  #openingIds(): readonly number[] {
    const { openThinking = "" } = this.#format.reader;
    return [...this.#encoder.encode(findMarks(openThinking, this.#format.marks))];
  }
}

function placesOf(
  messages: readonly Message[],
  turnStart: number,
  isSupervised: boolean,
): MessagePlace[] {
  const lastUser = lastUserIndex(messages);
  return messages.map((_, index) => {
    const isLast = index === messages.length - 1;
    return {
      index,
      isLast,
      isTarget: isLast && isSupervised,
      previous: messages[index - 1],
      next: messages[index + 1],
      lastUserIndex: lastUser,
      inLastAssistantTurn: index >= turnStart,
    };
  });
}

/** The position of a message that is not written yet. */
function nextPlace(messages: readonly Message[]): MessagePlace {
  return {
    index: messages.length,
    isLast: true,
    isTarget: false,
    previous: messages.at(-1),
    next: undefined,
    lastUserIndex: lastUserIndex(messages),
    inLastAssistantTurn: true,
  };
}

function lastUserIndex(messages: readonly Message[]): number {
  return messages.findLastIndex(({ role }) => role === "user");
}

/** Whether training begins with this message, so that it must directly follow its prompt. */
function isBoundary(
  messages: readonly Message[],
  index: number,
  trainOnWhat: TrainOnWhat,
): boolean {
  if (trainOnWhat === "last_assistant_message") return index === messages.length - 1;
  return trainOnWhat === "last_assistant_turn" && index === lastUserIndex(messages) + 1;
}

/**
 * Reads an answer that ends with a text such as `\n\nUser:`. Base models may end with the end-of-text token
 * instead; both at once, or the text more than once, is malformed.
 */
function readUntilText(
  tokenizer: RendererTokenizer,
  stop: string,
  tokens: readonly number[],
): ParsedResponse {
  const { eos } = tokenizer.namedTokens;
  const hasEos = eos !== null && tokens.at(-1) === eos.id;
  const pieces = tokenizer.decode(hasEos ? tokens.slice(0, -1) : tokens).split(stop);
  const content = pieces[0]!.replace(/^ /, "").replace(/\n\n$/, "");
  const terminations: Readonly<Record<string, Termination>> = {
    "1 true": "eos",
    "2 false": "stop_sequence",
  };
  return {
    message: { role: "assistant", content },
    termination: terminations[`${pieces.length} ${hasEos}`] ?? "malformed",
  };
}
