import { isObject, type JsonObject } from "../files/json.js";
import { tokenizerFields } from "./tokenizer-fields.js";

/** Tokens by id and ids by token, added tokens included. */
export interface TokenTables {
  idOf(token: string): number | null;
  tokenOf(id: number): string | null;
}

/** A model's tokens. */
export interface Vocabulary extends TokenTables {
  readonly size: number;
  /** Special tokens, with their ids. */
  readonly specialTokens: ReadonlyMap<string, number>;
  /** Added tokens, which are matched before a text is split into words; special ones included. */
  readonly addedTokens: ReadonlyMap<string, number>;
}

/** A token with its id. */
export interface NamedToken {
  /** The token as the vocabulary spells it. */
  readonly text: string;
  /** Its id. */
  readonly id: number;
}

/** A model's special tokens by purpose; null if it has none. */
export interface NamedTokens {
  /** Begins a text. */
  readonly bos: NamedToken | null;
  /** Ends a text or an answer. */
  readonly eos: NamedToken | null;
  /** Fills lists up to a common length. */
  readonly pad: NamedToken | null;
  /** Replaces text without a token. */
  readonly unk: NamedToken | null;
}

/** Reads a checked `tokenizer.json`; tokens are looked up in the tables that its encoder has built. */
export function readVocabulary(tokenizerJson: JsonObject, tables: TokenTables): Vocabulary {
  const model = tokenizerFields(tokenizerJson["model"], '"model"');
  const vocab = model.get("vocab");
  const list = Array.isArray(vocab) ? vocab : null;
  const inModel = (token: string, id: number) =>
    list ? id < list.length : isObject(vocab) && Object.hasOwn(vocab, token);
  let size = list ? list.length : Object.keys(vocab ?? {}).length;
  const specialTokens = new Map<string, number>();
  const added = new Map<string, number>();
  for (const token of addedTokens(tokenizerJson["added_tokens"])) {
    if (!inModel(token.text, token.id)) size++;
    added.set(token.text, token.id);
    if (token.special) specialTokens.set(token.text, token.id);
  }
  return {
    size,
    specialTokens,
    addedTokens: added,
    idOf: (token) => tables.idOf(token),
    tokenOf: (id) => tables.tokenOf(id),
  };
}

/** Finds the tokens that `tokenizer_config.json` names, given as a text or as an object with it. */
export function findNamedTokens(config: JsonObject | null, vocabulary: Vocabulary): NamedTokens {
  const find = (field: string): NamedToken | null => {
    const value = config?.[field];
    const text = isObject(value) ? value["content"] : value;
    if (typeof text !== "string") return null;
    const id = vocabulary.idOf(text);
    return id === null ? null : { text, id };
  };
  return {
    bos: find("bos_token"),
    eos: find("eos_token"),
    pad: find("pad_token"),
    unk: find("unk_token"),
  };
}

function* addedTokens(json: unknown): Generator<NamedToken & { special: boolean }> {
  for (const entry of Array.isArray(json) ? json : []) {
    const token = tokenizerFields(entry, "an added token");
    yield {
      text: token.string("content"),
      id: token.integer("id", 0),
      special: token.boolean("special", false),
    };
  }
}
