import type { Tokenizer } from "@tinker-ts/hub";
import { APIStatusError } from "../errors/api-error.js";
import { TinkerError } from "../errors/tinker-error.js";
import type { Connection } from "../session/connection.js";
import { loadTokenizerFrom, unusableTokenizer } from "./load-tokenizer.js";
import { tokenizerIdOf, type NamedModel } from "./tokenizer-id.js";

/** Tokenizers from the server, by model; they are megabytes. */
const newTokenizers = (): Map<string, Tokenizer> => new Map();

/**
 * Loads the tokenizer of a model of the server: from the server where it hands tokenizers
 * out, because it knows best what it trains with, else by the model's name.
 */
export async function loadModelTokenizer(
  model: NamedModel,
  connection: Connection,
  signal: AbortSignal,
): Promise<Tokenizer> {
  const id = tokenizerIdOf(model);
  if (!id) {
    throw new TinkerError("The server did not return the name of the model.", {
      code: "tokenizer_unusable",
    });
  }
  return (
    (await askServer(model.modelName ?? id.id, connection, signal)) ??
    loadTokenizerFrom(id, connection.runtime.env, signal)
  );
}

/** Codes of this project's server for a model that it cannot find; looking elsewhere is of no use then. */
const finalRefusals = new Set(["model_not_found", "hub_unreachable"]);

/** Servers other than this project's do not have the endpoint; any other refusal means that. */
async function askServer(
  model: string,
  connection: Connection,
  signal: AbortSignal,
): Promise<Tokenizer | undefined> {
  const kept = connection.shared(newTokenizers);
  const known = kept.get(model);
  if (known) return known;
  const { parseTokenizer } = await import("@tinker-ts/hub");
  const files = await connection.api
    .call("getTokenizer", null, { query: { model }, signal, maxRetries: 2 })
    .catch((error: unknown) => {
      if (!(error instanceof APIStatusError) || error.status >= 500) throw error;
      const code = (error.body as { code?: unknown } | null)?.code;
      if (typeof code === "string" && finalRefusals.has(code)) throw error;
      return undefined;
    });
  if (!files) return undefined;
  const { tokenizer, tokenizerConfig: config, chatTemplate } = files;
  const parsed = await parseTokenizer({ tokenizer, config, chatTemplate }).catch(
    (cause: unknown) => {
      throw unusableTokenizer(model, cause);
    },
  );
  kept.set(model, parsed);
  return parsed;
}
