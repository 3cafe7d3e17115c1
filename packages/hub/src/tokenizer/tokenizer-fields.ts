import { HubError } from "../errors.js";
import { JsonFields } from "../files/json-fields.js";

/** Typed access to a part of a `tokenizer.json`, such as `"decoder"`; `part` names it in errors. */
export function tokenizerFields(json: unknown, part: string): JsonFields {
  return new JsonFields(json, `${part} of tokenizer.json`, unsupportedTokenizer);
}

/** The error for a `tokenizer.json` that is not supported. */
export function unsupportedTokenizer(message: string, cause?: unknown): HubError {
  return new HubError("unsupported_tokenizer", message, { cause });
}
