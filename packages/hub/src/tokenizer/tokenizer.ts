import { HubError } from "../errors.js";
import { IncrementalDecoder, type TokenDecoder } from "./token-decoder.js";
import {
  ChatTemplate,
  type ChatMessage,
  type ChatTemplates,
  type RenderChatOptions,
} from "./chat-template.js";
import { encodeChat, type EncodedChat } from "./encode-chat.js";
import type { EncodeOptions, TokenEncoder } from "./token-encoder.js";
import type { NamedTokens, Vocabulary } from "./vocabulary.js";

/** How tokens are decoded. */
export interface DecodeOptions {
  /** Leaves out special tokens such as an end-of-turn mark. @default false */
  readonly skipSpecialTokens?: boolean;
}

/** Names of tokens that end a turn in the common chat formats, or a text. */
const turnEnds = [
  "<|im_end|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<|end|>",
  "<end_of_turn>",
  "<|endoftext|>",
];

/** A model's tokenizer: text to token ids and back. */
export class Tokenizer {
  /** Special tokens and their ids. */
  readonly specialTokens: ReadonlyMap<string, number>;
  /** Tokens that are recognized anywhere in a text, and their ids; special ones included. */
  readonly addedTokens: ReadonlyMap<string, number>;
  /** Number of tokens, added ones included. */
  readonly vocabSize: number;
  /** The model's special tokens by purpose; null if it has none. */
  readonly namedTokens: NamedTokens;
  /** The tokens at which a turn of the model ends. */
  readonly turnEnds: readonly number[];
  /** The model's chat templates by name. */
  readonly chatTemplates: ChatTemplates;
  readonly #encoder: TokenEncoder;
  readonly #decoder: TokenDecoder;
  readonly #vocabulary: Vocabulary;
  readonly #specialIds: ReadonlySet<number>;
  readonly #compiledTemplates = new Map<string, ChatTemplate>();
  readonly #bytes = new Map<number, Uint8Array>();

  /** Use `loadTokenizer` or `parseTokenizer`. */
  constructor(parts: {
    encoder: TokenEncoder;
    decoder: TokenDecoder;
    vocabulary: Vocabulary;
    namedTokens: NamedTokens;
    chatTemplates: ChatTemplates;
  }) {
    this.#encoder = parts.encoder;
    this.#decoder = parts.decoder;
    this.#vocabulary = parts.vocabulary;
    this.specialTokens = parts.vocabulary.specialTokens;
    this.addedTokens = parts.vocabulary.addedTokens;
    this.#specialIds = new Set(this.specialTokens.values());
    this.vocabSize = parts.vocabulary.size;
    this.namedTokens = parts.namedTokens;
    const marks = turnEnds.flatMap((mark) => this.specialTokens.get(mark) ?? []);
    const { eos } = parts.namedTokens;
    this.turnEnds = [...new Set(eos ? [eos.id, ...marks] : marks)];
    this.chatTemplates = parts.chatTemplates;
  }

  /** The ids of a text's tokens. */
  encode(text: string, options: EncodeOptions = {}): Int32Array {
    return Int32Array.from(this.#encoder.encode(text, options));
  }

  /** The text of tokens; ids without a token, which models may have for padding, give no text. */
  decode(ids: Iterable<number>, options: DecodeOptions = {}): string {
    const decoder = this.incrementalDecoder(options);
    return decoder.push(ids) + decoder.flush();
  }

  /** Decodes tokens as they come. */
  incrementalDecoder({ skipSpecialTokens = false }: DecodeOptions = {}): IncrementalDecoder {
    return new IncrementalDecoder(this.#decoder, (id) =>
      skipSpecialTokens && this.#specialIds.has(id) ? null : this.idToToken(id),
    );
  }

  /** The id of a token as the vocabulary spells it, or null. */
  tokenToId(token: string): number | null {
    return this.#vocabulary.idOf(token);
  }

  /** A token as the vocabulary spells it, or null. */
  idToToken(id: number): string | null {
    if (Number.isSafeInteger(id) && id >= 0) return this.#vocabulary.tokenOf(id);
    throw new HubError("invalid_token", `${id} is not a token id: ids are whole numbers from 0.`);
  }

  /** The bytes of UTF-8 that a token adds in the middle of a text; they may be parts of characters. */
  tokenBytes(id: number): Uint8Array {
    let bytes = this.#bytes.get(id);
    if (!bytes) {
      const token = this.idToToken(id);
      bytes = token === null ? new Uint8Array() : this.#decoder.bytesOf(token);
      this.#bytes.set(id, bytes);
    }
    return bytes;
  }

  /** The text that a token adds in the middle of a text, with U+FFFD for parts of characters. */
  tokenText(id: number): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.tokenBytes(id));
  }

  /** The model's chat template of a name, ready to render; the template engine is loaded with the first. */
  async chatTemplate(name = "default"): Promise<ChatTemplate> {
    const known = this.#compiledTemplates.get(name);
    if (known) return known;
    const texts: Record<string, string> = {};
    for (const [purpose, token] of Object.entries(this.namedTokens)) {
      if (token) texts[`${purpose}_token`] = token.text;
    }
    const template = await ChatTemplate.compile(this.chatTemplates, name, texts, this);
    this.#compiledTemplates.set(name, template);
    return template;
  }

  /** Renders a conversation with the model's chat template; encode the result without special tokens. */
  async renderChat(
    messages: readonly ChatMessage[],
    options: RenderChatOptions = {},
  ): Promise<string> {
    const template = await this.chatTemplate(options.template);
    return template.renderText({ messages, tools: options.tools ?? null }, options);
  }

  /**
   * The tokens of a conversation rendered with the model's chat template, and which of them are the assistant's;
   * no text of a message becomes a special token.
   */
  async encodeChat(
    messages: readonly ChatMessage[],
    options: RenderChatOptions = {},
  ): Promise<EncodedChat> {
    const template = await this.chatTemplate(options.template);
    return encodeChat(template, this.#specialIds, messages, options);
  }
}
