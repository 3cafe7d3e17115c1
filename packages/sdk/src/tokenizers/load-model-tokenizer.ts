import { APIStatusError } from "../errors/api-error.js";
import { TinkerError } from "../errors/tinker-error.js";
import type { Connection } from "../session/connection.js";
import { loadTokenizerFrom } from "./load-tokenizer.js";
import type { TokenizerFiles } from "./tokenizer-files.js";
import { tokenizerIdOf, type NamedModel } from "./tokenizer-id.js";
import type { Tokenizer } from "./tokenizer.js";

/** Loads the tokenizer of a model that the server told about. */
export function loadModelTokenizer(model: NamedModel, connection: Connection): Promise<Tokenizer> {
  const id = tokenizerIdOf(model);
  if (!id) {
    throw new TinkerError("The server does not tell the name of the model.", {
      code: "tokenizer_not_found",
    });
  }
  const name = model.modelName ?? id.id;
  return loadTokenizerFrom(id, {
    env: connection.runtime.env,
    askServer: () => askServer(name, connection),
  });
}

/** Servers other than this project's do not have the endpoint; any refusal means that. */
async function askServer(
  model: string,
  { api, closed }: Connection,
): Promise<TokenizerFiles | undefined> {
  try {
    return await api.call("getTokenizer", null, {
      query: { model },
      signal: closed,
      maxRetries: 2,
    });
  } catch (error) {
    if (error instanceof APIStatusError && error.status < 500) return undefined;
    throw error;
  }
}
