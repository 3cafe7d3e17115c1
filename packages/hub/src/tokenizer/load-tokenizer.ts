import path from "node:path";
import { HubError } from "../errors.js";
import { readJsonObjectIfPresent, readTextIfPresent, type JsonObject } from "../files/json.js";
import { collectChatTemplates } from "./chat-template.js";
import { TokenDecoder } from "./token-decoder.js";
import { TokenEncoder } from "./token-encoder.js";
import { prepareTokenizerJson } from "./tokenizer-json.js";
import { Tokenizer } from "./tokenizer.js";
import { findNamedTokens, readVocabulary } from "./vocabulary.js";

/** The contents of a tokenizer's files. */
export interface TokenizerFiles {
  /** `tokenizer.json`, parsed. */
  readonly tokenizer: JsonObject;
  /** `tokenizer_config.json`, parsed. @default null */
  readonly config?: JsonObject | null;
  /** `chat_template.jinja`. @default null */
  readonly chatTemplate?: string | null;
}

/** Loads the tokenizer of a model folder. */
export async function loadTokenizer(folder: string, signal?: AbortSignal): Promise<Tokenizer> {
  const tokenizer = await readJsonObjectIfPresent(path.join(folder, "tokenizer.json"), signal);
  if (!tokenizer) {
    throw new HubError(
      "tokenizer_missing",
      `${folder} has no tokenizer.json. Save it with a fast tokenizer of transformers to get one.`,
    );
  }
  const config = await readJsonObjectIfPresent(path.join(folder, "tokenizer_config.json"), signal);
  const chatTemplate = await readTextIfPresent(path.join(folder, "chat_template.jinja"), signal);
  return parseTokenizer({ tokenizer, config, chatTemplate });
}

/** Builds a tokenizer from the contents of its files; the encoding library is loaded with the first one. */
export async function parseTokenizer(files: TokenizerFiles): Promise<Tokenizer> {
  const json = prepareTokenizerJson(files.tokenizer);
  const decoder = new TokenDecoder(json["decoder"]);
  const config = files.config ?? null;
  const encoder = await TokenEncoder.create(json);
  const vocabulary = readVocabulary(json, encoder);
  return new Tokenizer({
    encoder,
    decoder,
    vocabulary,
    namedTokens: findNamedTokens(config, vocabulary),
    chatTemplates: collectChatTemplates(config, files.chatTemplate ?? null),
  });
}
