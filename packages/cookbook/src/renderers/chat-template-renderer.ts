import { ModelInput } from "tinker-ts";
import {
  pythonStrip,
  type ChatMessage,
  type ChatTemplate,
  type RenderedChat,
  type Tokenizer,
} from "@tinker-ts/hub";
import { checkMessages, checkRole, checkTrainable } from "./check-messages.js";
import { declaredTools, withDeclaredTools } from "./declared-tools.js";
import { textOf, type Message, type ToolSpec } from "./message.js";
import { toOpenAIMessage } from "./openai-messages.js";
import { MarkSigns } from "./parsing/marked-text.js";
import { readResponse, type ReadingContext } from "./parsing/read-response.js";
import { StreamingReader } from "./parsing/streaming-reader.js";
import { readTagged, type TaggedAnswers } from "./parsing/tagged-reader.js";
import { RendererError } from "./renderer-error.js";
import type {
  GenerationPromptOptions,
  ParsedResponse,
  ParseOptions,
  Renderer,
  StreamingParser,
  SupervisedExample,
} from "./renderer.js";
import { splitConversation } from "./split-conversation.js";
import { assembleExample, isTrained, type WeightedChunk } from "./supervised-example.js";
import type { TrainOnWhat } from "./train-on-what.js";

/** Options of a model's own chat template. */
export interface ChatTemplateOptions {
  /** Name of the template, for models that have several. @default "default" */
  readonly template?: string;
  /** Variables of the template, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/**
 * A renderer for any model with a chat template. The assistant's part of its output
 * is found by comparing the rendering of a conversation with the rendering of its beginning.
 */
export async function chatTemplateRenderer(
  tokenizer: Tokenizer,
  options: ChatTemplateOptions = {},
): Promise<Renderer> {
  const template = await tokenizer.chatTemplate(options.template);
  return new TemplateRenderer(tokenizer, template, options.variables ?? {});
}

const question = { role: "user", content: "Q" };
const probe = "\u2603answer\u2603";

class TemplateRenderer implements Renderer {
  readonly name = "chat_template";
  readonly tokenizer: Tokenizer;
  readonly hasExtensionProperty: boolean;
  readonly disablesThinking: boolean;
  readonly supportsStreaming = true;
  readonly stopSequences: number[];
  readonly #template: ChatTemplate;
  readonly #variables: Readonly<Record<string, unknown>>;
  readonly #stop: string;
  readonly #reading: ReadingContext;
  readonly #opening: readonly number[];

  constructor(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    variables: Readonly<Record<string, unknown>>,
  ) {
    this.tokenizer = tokenizer;
    this.#template = template;
    this.#variables = variables;
    const stop = this.#findStop();
    this.#stop = stop;
    this.stopSequences = [tokenizer.addedTokens.get(stop) ?? tokenizer.tokenToId(stop)!];
    this.hasExtensionProperty = this.#extends();
    const prompt = this.#render([question], true).toString();
    this.disablesThinking = /<\/think>\s*$/.test(prompt);
    const open = /<think>\s*$/.exec(prompt)?.[0] ?? "";
    this.#opening = [...tokenizer.encode(open, { addSpecialTokens: false })];
    const marks = ["<think>", "</think>", "<tool_call>", "</tool_call>", stop];
    const idOf = (mark: string) => tokenizer.addedTokens.get(mark);
    this.#reading = {
      tokenizer,
      signs: new MarkSigns(marks, idOf),
      stopIds: new Set(this.stopSequences),
      reader: {
        ...(open === "" ? {} : { openThinking: open }),
        thinkTags: ["<think>", "</think>"],
        read: (text, signs) => this.#read(text, signs),
      },
    };
  }

  buildGenerationPrompt(
    messages: readonly Message[],
    { role = "assistant", prefill = "" }: GenerationPromptOptions = {},
  ): ModelInput {
    checkMessages(messages);
    checkRole(role, "role", ["assistant"]);
    const options = { addSpecialTokens: false, splitAddedTokens: true };
    const chunks = [
      this.#render(messages.map(toTemplate), true, declaredTools(messages)).encode(),
      this.tokenizer.encode(prefill, options),
    ].filter(({ length }) => length > 0);
    return new ModelInput({ chunks: chunks.map((tokens) => ({ type: "encoded_text", tokens })) });
  }

  buildSupervisedExample(
    messages: readonly Message[],
    trainOnWhat: TrainOnWhat = "last_assistant_message",
  ): SupervisedExample {
    checkMessages(messages);
    checkTrainable(messages, trainOnWhat);
    const tools = declaredTools(messages);
    const converted = messages.map(toTemplate);
    const whole = this.#render(converted, false, tools);
    const turnStart = lastUserIndex(messages.slice(0, -1)) + 1;
    const spans = messages.flatMap((message, index) => {
      const place = {
        isLast: index === messages.length - 1,
        inLastAssistantTurn: index >= turnStart,
      };
      if (!isTrained(message, place, trainOnWhat)) return [];
      return [this.#spanOf(whole, converted, index, tools)];
    });
    const end = messages.at(-1)?.role === "assistant" ? this.#endOf(whole) : whole.length;
    return assembleExample(this.#cut(whole, spans, end, trainOnWhat === "all_tokens"));
  }

  buildSupervisedExamples(
    messages: readonly Message[],
    trainOnWhat: TrainOnWhat = "last_assistant_turn",
  ): SupervisedExample[] {
    return splitConversation(
      {
        name: this.name,
        extension: this.hasExtensionProperty ? "always" : "never",
        splitsByUserTurn: false,
        turnStart: (list) => lastUserIndex(list) + 1,
        build: (list, mode) => this.buildSupervisedExample(list, mode),
      },
      messages,
      trainOnWhat,
    );
  }

  parseResponse(tokens: Iterable<number>, { insideThinking }: ParseOptions = {}): ParsedResponse {
    const ids = [...tokens];
    const isInside = insideThinking ?? this.tokenizer.decode(ids).includes("</think>");
    const isOpen = this.#opening.every((id, index) => ids[index] === id);
    const opening = isInside && !isOpen && ids.length > 0 ? this.#opening : [];
    return readResponse(this.#reading, [...opening, ...ids], {
      always: insideThinking !== undefined,
      endsThinking: insideThinking === true && opening.length > 0,
    });
  }

  streamingParser(options: ParseOptions = {}): StreamingParser {
    const { insideThinking = this.#opening.length > 0 } = options;
    const opening = insideThinking ? this.#opening : [];
    return new StreamingReader(this.#reading, ["<think>", "</think>"], opening);
  }

  createConversationPrefixWithTools(tools: readonly ToolSpec[], systemPrompt = ""): Message[] {
    if (tools.length > 0 && !this.#template.source.includes("tools")) {
      throw new RendererError("The model's chat template does not support tools.");
    }
    return [withDeclaredTools({ role: "system", content: systemPrompt }, tools)];
  }

  toOpenAIMessage(message: Message): Record<string, unknown> {
    return toOpenAIMessage(message);
  }

  #render(
    messages: readonly ChatMessage[],
    addGenerationPrompt: boolean,
    tools?: readonly ToolSpec[],
  ): RenderedChat {
    return this.#template.render(messages, {
      addGenerationPrompt,
      variables: this.#variables,
      ...(tools && tools.length > 0
        ? { tools: tools.map((tool) => ({ type: "function", function: tool })) }
        : {}),
    });
  }

  /** The range of a message in the whole rendering. */
  #spanOf(
    whole: RenderedChat,
    messages: readonly ChatMessage[],
    index: number,
    tools: readonly ToolSpec[] | undefined,
  ): { start: number; end: number } {
    const message = messages[index]!;
    const before = messages.slice(0, index);
    const start =
      message.role === "assistant"
        ? this.#startOfAnswer(whole, before, tools)
        : whole.indexOfText(
            pythonStrip(String(message.content)),
            this.#lengthOf(whole, before, tools),
          );
    if (start < 0) throw this.#rewrites(index);
    const stop = whole.indexOfMark(this.#stop, start);
    return { start, end: stop < 0 ? whole.length : stop + this.#stop.length };
  }

  /** The end of an answer's prompt, or the first difference between the prompt and the whole. */
  #startOfAnswer(
    whole: RenderedChat,
    before: readonly ChatMessage[],
    tools: readonly ToolSpec[] | undefined,
  ): number {
    const prompt = this.#render(before, true, tools);
    const common = whole.commonLength(prompt);
    if (common === prompt.length) return common;
    return Math.max(common, this.#lengthOf(whole, before, tools));
  }

  /** The length of the earlier messages in the whole. */
  #lengthOf(
    whole: RenderedChat,
    before: readonly ChatMessage[],
    tools: readonly ToolSpec[] | undefined,
  ): number {
    if (before.length === 0) return 0;
    const beginning = this.#render(before, false, tools);
    const length = whole.commonLength(beginning);
    if (length < this.#endOf(beginning)) throw this.#rewrites();
    return length;
  }

  /** Text after the last stop is not written by the model. */
  #endOf(chat: RenderedChat): number {
    let end = -1;
    for (
      let at = chat.indexOfMark(this.#stop);
      at >= 0;
      at = chat.indexOfMark(this.#stop, at + this.#stop.length)
    ) {
      end = at + this.#stop.length;
    }
    return end < 0 ? chat.length : end;
  }

  #cut(
    whole: RenderedChat,
    spans: readonly { start: number; end: number }[],
    end: number,
    isAll: boolean,
  ): WeightedChunk[] {
    const piece = (from: number, to: number, weight: 0 | 1): WeightedChunk => ({
      chunk: { type: "encoded_text", tokens: whole.slice(from, to).encode() },
      weight,
    });
    if (isAll) {
      const { chunk } = piece(0, end, 1);
      const { bos } = this.tokenizer.namedTokens;
      const beginsWithBos = bos !== null && "tokens" in chunk && chunk.tokens[0] === bos.id;
      return [{ chunk, weight: 1, given: beginsWithBos ? 1 : 0 }];
    }
    const chunks: WeightedChunk[] = [];
    let from = 0;
    for (const span of spans) {
      chunks.push(piece(from, span.start, 0), piece(span.start, span.end, 1));
      from = span.end;
    }
    return [...chunks, piece(from, Math.max(from, end), 0)];
  }

  #read(text: string, signs: MarkSigns): Message {
    const calls: TaggedAnswers["calls"] = this.#template.source.includes("<function=")
      ? "xml"
      : "json";
    return readTagged(text, signs, { frame: "lines", beforeCalls: "\n", calls });
  }

  /** The token that the template writes after an answer. */
  #findStop(): string {
    const chat = this.#render([question, { role: "assistant", content: probe }], false);
    const stop = chat.firstMark(chat.indexOfText(probe, 0)) ?? this.tokenizer.namedTokens.eos?.text;
    if (stop !== undefined) return stop;
    throw new RendererError(
      "The chat template writes no token after an answer, and the tokenizer names no end-of-text token.",
    );
  }

  /** Whether a second question leaves the first answer unchanged, with reasoning and without. */
  #extends(): boolean {
    const answers = [
      { role: "assistant", content: "A" },
      { role: "assistant", content: "A", reasoning_content: "R" },
    ];
    return answers.every((answer) => {
      const first = this.#render([question, answer], false);
      const second = this.#render([question, answer, question], false);
      const prompt = this.#render([question], true);
      const end = this.#endOf(first);
      return first.commonLength(prompt) === prompt.length && second.commonLength(first) >= end;
    });
  }

  #rewrites(index?: number): RendererError {
    const which = index === undefined ? "earlier messages" : `messages[${index}]`;
    return new RendererError(
      `The chat template of this model rewrites ${which} when more follows, so they cannot be trained in ` +
        "one example. Use buildSupervisedExamples with assistant messages.",
    );
  }
}

function toTemplate(message: Message, index: number): ChatMessage {
  if (typeof message.content !== "string" && message.content.some(({ type }) => type === "image")) {
    throw new RendererError(`messages[${index}] has a picture, which chat_template cannot render.`);
  }
  const converted = toOpenAIMessage(message, { thinking: "field", arguments: "object" });
  return { ...converted, role: message.role, content: textOf(message) };
}

function lastUserIndex(messages: readonly Message[]): number {
  return messages.findLastIndex(({ role }) => role === "user");
}
