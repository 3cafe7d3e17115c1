import { ApiError, badRequest } from "../errors/api-error.js";
import { checkJsonParts } from "./json-parts.js";

/** Whether a text is one value, or has one on each line. */
export type JsonTextForm = "whole" | "lines";

/** Lines of one body; others keep their places for the sake of their numbers. */
const maxLines = 10_000;

/** The texts of JSON in a body, which make no more of themselves than the event loop has time for. */
export function readJsonTexts(bytes: Uint8Array, form: JsonTextForm): string[] {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new ApiError(400, "the body is not JSON: it is not UTF-8", { cause: error });
  }
  const texts = form === "whole" ? [text] : text.split("\n", maxLines + 2);
  // The last line ends as well.
  if (texts.at(-1)?.trim() === "" && texts.length > 1) texts.pop();
  if (texts.length > maxLines) throw badRequest("body", `at most ${maxLines} lines at a time`);
  for (const one of texts) checkJsonParts(one);
  return texts;
}
