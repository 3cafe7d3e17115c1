import { DependencyError } from "../errors/dependency-error.js";
import type { TokenizerFiles } from "./tokenizer-files.js";

/** How text is turned into tokens. */
export interface EncodeOptions {
  /**
   * Adds the tokens that the model expects around a text, such as a beginning.
   * @default true
   */
  readonly addSpecialTokens?: boolean | undefined;
}

/** How tokens are turned into text. */
export interface DecodeOptions {
  /**
   * Leaves out tokens that stand for no text.
   * @default false
   */
  readonly skipSpecialTokens?: boolean | undefined;
}

/** The special tokens that a model names; null where it has none. */
export interface SpecialTokens {
  readonly bos: string | null;
  readonly eos: string | null;
  readonly pad: string | null;
  readonly unk: string | null;
}

type Implementation = import("@huggingface/tokenizers").Tokenizer;

/** Turns text into the tokens of a model and back. */
export class Tokenizer {
  /** Where it comes from: a hub id, a folder or a model of the server. */
  readonly id: string;
  readonly specialTokens: SpecialTokens;
  /** The Jinja source of the model's chat template; null when it has none. */
  readonly chatTemplate: string | null;
  readonly #implementation: Implementation;

  private constructor(id: string, files: TokenizerFiles, implementation: Implementation) {
    const config = files.tokenizerConfig ?? {};
    this.id = id;
    this.#implementation = implementation;
    this.specialTokens = {
      bos: tokenText(config["bos_token"]),
      eos: tokenText(config["eos_token"]),
      pad: tokenText(config["pad_token"]),
      unk: tokenText(config["unk_token"]),
    };
    this.chatTemplate = files.chatTemplate ?? templateText(config["chat_template"]);
  }

  /** Builds a tokenizer from its files; needs the package `@huggingface/tokenizers`. */
  static async fromFiles(id: string, files: TokenizerFiles): Promise<Tokenizer> {
    const library = await import("@huggingface/tokenizers").catch((cause: unknown) => {
      throw new DependencyError("@huggingface/tokenizers", "to use tokenizers", { cause });
    });
    const config = files.tokenizerConfig ?? {};
    return new Tokenizer(id, files, new library.Tokenizer(files.tokenizer, config));
  }

  encode(text: string, options: EncodeOptions = {}): number[] {
    const addSpecialTokens = options.addSpecialTokens ?? true;
    return this.#implementation.encode(text, { add_special_tokens: addSpecialTokens }).ids;
  }

  decode(tokens: Int32Array | readonly number[], options: DecodeOptions = {}): string {
    const skipSpecialTokens = options.skipSpecialTokens ?? false;
    return this.#implementation.decode(Array.from(tokens), {
      skip_special_tokens: skipSpecialTokens,
      clean_up_tokenization_spaces: false,
    });
  }

  /** The id of a token by its text; undefined when the vocabulary does not have it. */
  tokenToId(token: string): number | undefined {
    return this.#implementation.token_to_id(token);
  }

  /** The text of a token by its id; undefined when the vocabulary does not have it. */
  idToToken(id: number): string | undefined {
    return this.#implementation.id_to_token(id);
  }

  get bosTokenId(): number | undefined {
    return this.#idOf(this.specialTokens.bos);
  }

  get eosTokenId(): number | undefined {
    return this.#idOf(this.specialTokens.eos);
  }

  get padTokenId(): number | undefined {
    return this.#idOf(this.specialTokens.pad);
  }

  /** How many tokens there are, added ones included. */
  get vocabSize(): number {
    return this.#implementation.get_vocab(true).size;
  }

  #idOf(token: string | null): number | undefined {
    return token === null ? undefined : this.tokenToId(token);
  }
}

/** A token is written as text, or as an object around it. */
function tokenText(token: unknown): string | null {
  if (typeof token === "string") return token;
  if (typeof token !== "object" || token === null || !("content" in token)) return null;
  return typeof token.content === "string" ? token.content : null;
}

/** A template is written as text, or as a list of named ones of which one is the default. */
function templateText(template: unknown): string | null {
  if (typeof template === "string") return template;
  if (!Array.isArray(template)) return null;
  const named = template as readonly { readonly name?: unknown; readonly template?: unknown }[];
  const chosen = named.find(({ name }) => name === "default") ?? named[0];
  return typeof chosen?.template === "string" ? chosen.template : null;
}
