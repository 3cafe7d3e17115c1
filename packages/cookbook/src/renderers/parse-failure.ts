import type { ParsedResponse } from "./renderer.js";

/** Why an answer cannot be used as it is. */
export interface ParseFailure {
  /**
   * `structural`: where the message ends is unknown, so the conversation cannot go on. `content`: the message
   * is whole, but calls in it could not be read; the model can be told and asked again.
   */
  readonly kind: "structural" | "content";
  readonly detail: string;
}

const longestDetail = 16_384;

/** What is wrong with an answer; undefined when nothing is. */
export function classifyParseFailure(response: ParsedResponse): ParseFailure | undefined {
  const { message, termination } = response;
  if (termination === "malformed") {
    return { kind: "structural", detail: "the answer did not end with its stop sequence" };
  }
  const unparsed = message.unparsedToolCalls ?? [];
  if (unparsed.length === 0) return undefined;
  const detail = unparsed.map(({ error }) => error).join("\n");
  return { kind: "content", detail: detail.slice(0, longestDetail) };
}
