import { ApiError, badRequest } from "../errors/api-error.js";
import { checkSize, maxParts } from "./check-size.js";

/** Whether a text is one value, or has one on each line. */
export type JsonForm = "whole" | "lines";

/** Lines of one body; others keep their places for the sake of their numbers. */
const maxLines = 10_000;

/** The texts of JSON in a body, none of which becomes more than the event loop has time for. */
export function readJson(bytes: Uint8Array, form: JsonForm): string[] {
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
  for (const one of texts) checkText(one, maxParts[form]);
  return texts;
}

function checkText(text: string, most: number): void {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported by the reader, who knows which line it is.
    return;
  }
  checkSize(value, most);
}
