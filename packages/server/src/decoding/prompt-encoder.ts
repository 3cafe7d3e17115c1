import type { Tokenizer } from "@tinker-ts/hub";
import { encodeChatText, type ChatText, type EncodedText } from "./chat-text.js";
import { DecodingThreads } from "./decoding-threads.js";

/** Texts up to this length are encoded at once; a character takes a few microseconds. */
const smallLength = 4096;

/** Owners whose texts are encoded at the same time: each thread has tokenizers of its own. */
const maxThreads = 2;

/** A tokenizer, and the folder that a thread can load the same one from. */
export interface TextSource {
  readonly tokenizer: Tokenizer;
  readonly folder: string;
}

/** Makes tokens of what people send: of short texts at once, of others in a thread. */
export class PromptEncoder {
  readonly #threads = new DecodingThreads(maxThreads);

  /** The tokens of each text. */
  async encode(
    owner: string,
    { tokenizer, folder }: TextSource,
    texts: readonly string[],
    addSpecialTokens: boolean,
  ): Promise<Int32Array[]> {
    const length = texts.reduce((sum, text) => sum + text.length, 0);
    if (length <= smallLength) {
      return texts.map((text) => tokenizer.encode(text, { addSpecialTokens }));
    }
    const work = { kind: "texts", folder, texts, addSpecialTokens } as const;
    return (await this.#threads.run(owner, work, [])) as Int32Array[];
  }

  /** The tokens of a conversation, written with the model's own template. */
  async encodeChat(
    owner: string,
    { tokenizer, folder }: TextSource,
    chat: ChatText,
  ): Promise<EncodedText> {
    if (isShort(chat)) return encodeChatText(await tokenizer.chatTemplate(), chat);
    return (await this.#threads.run(owner, { kind: "chat", folder, chat }, [])) as EncodedText;
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}

/** What a value without text weighs: templates take time for those too. */
const valueLength = 16;

function isShort(value: unknown): boolean {
  let length = 0;
  const measure = (one: unknown): void => {
    length += typeof one === "string" ? one.length : valueLength;
    if (length > smallLength || typeof one !== "object" || one === null) return;
    for (const part of Object.values(one)) measure(part);
  };
  measure(value);
  return length <= smallLength;
}
