import type { ResolveModelOptions, Tokenizer } from "@tinker-ts/hub";
import { TinkerError } from "../errors/tinker-error.js";
import type { Environment } from "../runtime/environment.js";
import { SharedWork } from "../runtime/shared-work.js";
import type { TokenizerId } from "./tokenizer-id.js";

const maxKept = 32;
const kept = new Map<string, SharedWork<Tokenizer>>();

/** Variables that decide which files a name refers to. */
const variables = ["HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE"];

/**
 * Loads a tokenizer from a folder of that name, the Hugging Face cache or the hub. The last ones loaded
 * are kept; concurrent calls share the work, which ends when all of them are aborted.
 */
export async function loadTokenizerFrom(
  tokenizer: TokenizerId,
  env: Environment,
  signal: AbortSignal | undefined,
): Promise<Tokenizer> {
  const { id, revision } = tokenizer;
  const key = JSON.stringify([id, revision, variables.map((name) => env[name])]);
  const known = kept.get(key);
  if (known && !known.isGivenUp) return known.wait(signal);
  const loading: SharedWork<Tokenizer> = new SharedWork((giveUp) =>
    load(tokenizer, env, giveUp).catch((error: unknown) => {
      if (kept.get(key) === loading) kept.delete(key);
      throw error;
    }),
  );
  const oldest = kept.size >= maxKept ? kept.keys().next().value : undefined;
  if (oldest !== undefined) kept.delete(oldest);
  kept.set(key, loading);
  return loading.wait(signal);
}

async function load(
  { id, revision }: TokenizerId,
  env: Environment,
  signal: AbortSignal,
): Promise<Tokenizer> {
  const { resolveModel, loadTokenizer } = await import("@tinker-ts/hub");
  const options: ResolveModelOptions = { files: "tokenizer", env, signal };
  try {
    const { folder } = await resolveModel(
      id,
      revision === null ? options : { ...options, revision },
    );
    return await loadTokenizer(folder, signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw unusableTokenizer(id, cause);
  }
}

/** The error of a tokenizer that was not found or cannot be read. */
export function unusableTokenizer(id: string, cause: unknown): TinkerError {
  const problem = cause instanceof Error ? cause.message : String(cause);
  return new TinkerError(`The tokenizer of ${id} cannot be loaded: ${problem}`, {
    code: "tokenizer_unusable",
    cause,
  });
}
