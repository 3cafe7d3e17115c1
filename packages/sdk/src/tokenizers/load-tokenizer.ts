import { TinkerError } from "../errors/tinker-error.js";
import type { Environment } from "../runtime/environment.js";
import { readHubCache } from "./hub-cache.js";
import { downloadFromHub, isHubAllowed } from "./hub-download.js";
import { readFolder } from "./read-folder.js";
import { collectFiles, type TokenizerFiles } from "./tokenizer-files.js";
import type { TokenizerId } from "./tokenizer-id.js";
import { Tokenizer } from "./tokenizer.js";

/** Where tokenizers are looked for besides folders and the hub. */
export interface TokenizerSources {
  readonly env: Environment;
  /** Asks the server; undefined when it does not have it. */
  readonly askServer?: (() => Promise<TokenizerFiles | undefined>) | undefined;
}

const maxKept = 32;
const kept = new Map<string, Promise<Tokenizer>>();

/**
 * Loads a tokenizer: from a folder of that name, from the cache, from the server where it offers
 * tokenizers, or from the hub. The last ones loaded are kept.
 */
export function loadTokenizerFrom(
  tokenizer: TokenizerId,
  sources: TokenizerSources,
): Promise<Tokenizer> {
  const key = `${tokenizer.id}@${tokenizer.revision ?? ""}`;
  const known = kept.get(key);
  if (known) return known;
  const loading = find(tokenizer, sources);
  const oldest = kept.size >= maxKept ? kept.keys().next().value : undefined;
  if (oldest !== undefined) kept.delete(oldest);
  kept.set(key, loading);
  loading.catch(() => kept.delete(key));
  return loading;
}

async function find(tokenizer: TokenizerId, sources: TokenizerSources): Promise<Tokenizer> {
  const { env, askServer } = sources;
  const files =
    (await collectFiles(readFolder(tokenizer.id))) ??
    (await collectFiles(readHubCache(tokenizer, env))) ??
    (await askServer?.()) ??
    (isHubAllowed(env) ? await collectFiles(downloadFromHub(tokenizer, env)) : undefined);
  if (files) return Tokenizer.fromFiles(tokenizer.id, files);
  throw new TinkerError(
    `There is no tokenizer.json for ${tokenizer.id}: looked for a folder of that name, in the Hugging Face cache${askServer ? ", at the server" : ""}${isHubAllowed(env) ? " and on the hub" : " (the hub is switched off by HF_HUB_OFFLINE)"}. Pass a folder that holds one to loadTokenizer().`,
    { code: "tokenizer_not_found" },
  );
}
