import type { Tokenizer } from "@tinker-ts/hub";
import { platform } from "../runtime/platform.js";

/** Where a tokenizer is looked for. */
export interface LoadTokenizerOptions {
  /** The state of the repository on the hub; its newest by default. */
  readonly revision?: string | undefined;
  /**
   * Environment variables, such as `HF_HOME` and `HF_TOKEN`.
   * @default process.env
   */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Gives the loading up. */
  readonly signal?: AbortSignal | undefined;
}

/** Loads a tokenizer from a folder that holds its files, from the Hugging Face cache or from the hub. */
export async function loadTokenizer(
  idOrFolder: string,
  options: LoadTokenizerOptions = {},
): Promise<Tokenizer> {
  const { loadTokenizerFrom } = await import("../tokenizers/load-tokenizer.js");
  const { revision = null, env = platform.env, signal } = options;
  return loadTokenizerFrom({ id: idOrFolder, revision }, env, signal);
}
