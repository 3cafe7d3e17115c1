import { unusableTokenizer } from "./load-tokenizer.browser.js";

/** Refuses: takes the place of load-model-tokenizer.ts in bundles for browsers. */
export async function loadModelTokenizer(): Promise<never> {
  throw unusableTokenizer();
}
