import type { JsonObject } from "../files/json.js";
import { unsupportedTokenizer } from "./tokenizer-fields.js";
import { addedTokens, withoutAddedTokens } from "./without-added-tokens.js";

/** How a text is encoded. */
export interface EncodeOptions {
  /** Adds the model's special tokens around a text, such as a begin token. @default true */
  readonly addSpecialTokens?: boolean;
  /**
   * Encodes text that spells a special token as plain text: for messages of users, who must not be able to
   * end their turn and begin another's. @default false
   */
  readonly splitSpecialTokens?: boolean;
  /**
   * Encodes text that spells any added token as plain text, also tokens that are not special such as `<think>`;
   * added tokens of blanks alone stay tokens. @default false
   */
  readonly splitAddedTokens?: boolean;
}

/** The conversion of text to a vocabulary's ids, as a checked `tokenizer.json` describes it. */
export class TokenEncoder {
  readonly #library: Library;
  readonly #json: JsonObject;
  readonly #encoder: LibraryEncoder;
  /** Without special tokens. Created on first use: it takes as much memory as the other. */
  #withoutSpecial: LibraryEncoder | undefined;
  /** Without added tokens; the same object if all of them are special. */
  #withoutAdded: LibraryEncoder | undefined;

  private constructor(library: Library, json: JsonObject) {
    this.#library = library;
    this.#json = json;
    this.#encoder = build(library, json);
  }

  /** Loads the encoding library with the first call. */
  static async create(json: JsonObject): Promise<TokenEncoder> {
    return new TokenEncoder(await import("@huggingface/tokenizers"), json);
  }

  encode(text: string, options: EncodeOptions): number[] {
    const { addSpecialTokens = true, splitSpecialTokens, splitAddedTokens } = options;
    if (!splitSpecialTokens && !splitAddedTokens) {
      return this.#encoder.encode(text, { add_special_tokens: addSpecialTokens }).ids;
    }
    const encoder = splitAddedTokens ? this.#addedAsText() : this.#specialAsText();
    const { ids } = encoder.encode(text, { add_special_tokens: false });
    return addSpecialTokens ? this.#surround(ids) : ids;
  }

  #specialAsText(): LibraryEncoder {
    const isSplit = (token: JsonObject) => token["special"] === true;
    this.#withoutSpecial ??= build(this.#library, withoutAddedTokens(this.#json, isSplit));
    return this.#withoutSpecial;
  }

  #addedAsText(): LibraryEncoder {
    const isSplit = (token: JsonObject) =>
      token["special"] === true || String(token["content"]).trim() !== "";
    this.#withoutAdded ??= addedTokens(this.#json).some(
      (token) => token["special"] !== true && isSplit(token),
    )
      ? build(this.#library, withoutAddedTokens(this.#json, isSplit))
      : this.#specialAsText();
    return this.#withoutAdded;
  }

  idOf(token: string): number | null {
    return this.#encoder.token_to_id(token) ?? null;
  }

  tokenOf(id: number): string | null {
    return this.#encoder.id_to_token(id) ?? null;
  }

  /** Adds the model's special tokens before and after a text. */
  #surround(ids: readonly number[]): number[] {
    // A placeholder for the text: no token is empty.
    const place = "";
    const rules = this.#encoder.post_processor;
    const tokens = rules?.post_process([place], null, true).tokens ?? [place];
    return tokens.flatMap((token) => (token === place ? ids : (this.idOf(token) ?? [])));
  }
}

/** The part of the library that is used here; the types it ships are all `any` under Node's way of resolving. */
interface Library {
  readonly Tokenizer: new (json: JsonObject, config: JsonObject) => LibraryEncoder;
}

interface LibraryEncoder {
  readonly post_processor: PostProcessor | null;
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] };
  token_to_id(token: string): number | undefined;
  id_to_token(id: number): string | undefined;
}

interface PostProcessor {
  post_process(tokens: string[], pair: null, addSpecialTokens: boolean): { tokens: string[] };
}

function build(library: Library, json: JsonObject): LibraryEncoder {
  try {
    return new library.Tokenizer(json, {});
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw unsupportedTokenizer(`tokenizer.json cannot be used: ${reason}`, cause);
  }
}
