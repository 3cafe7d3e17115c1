import { ApiError, badRequest } from "../errors/api-error.js";
import { scanJson, type JsonText } from "./json-scan.js";

/** Whether a text is one value, or has one on each line. */
export type JsonTextForm = "whole" | "lines";

/** Lines of one body; others keep their places for the sake of their numbers. */
const maxLines = 10_000;

/** What one text may cost the event loop: some ten milliseconds. Lines show what was trained on, in many short lists. */
const maxCosts = { whole: 200_000, lines: 400_000 } as const;

/** The texts of JSON in a body, which make no more of themselves than the event loop has time for. */
export function readJsonTexts(bytes: Uint8Array, form: JsonTextForm): JsonText[] {
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
  return texts.map((one) => scanJson(one, maxCosts[form]));
}
