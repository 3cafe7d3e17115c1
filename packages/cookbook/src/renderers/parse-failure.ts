import type { ParsedResponse } from "./renderer.js";

/** The reason why an answer cannot be used. */
export interface ParseFailure {
  /**
   * `structural`: the end of the message is unknown, so the conversation cannot continue. `content`: the message
   * is complete, but calls in it could not be parsed; the error can be sent to the model for another attempt.
   */
  readonly kind: "structural" | "content";
  readonly detail: string;
}

const longestDetail = 16_384;

/** The failure of an answer; undefined if there is none. */
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
