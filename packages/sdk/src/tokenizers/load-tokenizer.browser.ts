import type { TinkerError } from "../errors/tinker-error.js";
import { notInBrowser } from "../errors/not-in-browser.js";

/*
 * Takes the place of load-tokenizer.ts in bundles for browsers: the package behind it reads files.
 */

const refuse = async (): Promise<never> => {
  throw unusableTokenizer();
};

export const loadTokenizerFrom = refuse;
export const importHub = refuse;

/** The error of a tokenizer that cannot be had. */
export function unusableTokenizer(): TinkerError {
  return notInBrowser("tokenizer", "encode texts on a server and pass token ids");
}
