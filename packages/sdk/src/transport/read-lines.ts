import { APIResponseValidationError } from "../errors/api-error.js";

/** Longest line that is waited for. */
const maxLineLength = 2 ** 28;

/** The lines of a text that arrives in parts, without empty ones; characters may be cut anywhere. */
export async function* readLines(
  parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of parts) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > maxLineLength) throw tooLong();
    for (const line of lines) if (line.trim() !== "") yield line;
  }
  rest += decoder.decode();
  if (rest.trim() !== "") yield rest;
  return undefined;
}

function tooLong(): APIResponseValidationError {
  const options = { status: 200, code: "response_too_large" };
  return new APIResponseValidationError(
    "A line of the answer has no end and was not read.",
    options,
  );
}
