import { stringifyJson } from "tinker-ts/wire";
import { badRequest } from "../errors/api-error.js";

const maxCharacters = 65_536;

/** Facts of the user are kept as they are, but they are facts and not data. */
export function checkMetadata(field: string, value: unknown): void {
  const { length } = stringifyJson(value);
  if (length <= maxCharacters) return;
  throw badRequest(field, `is ${length} characters of JSON; at most ${maxCharacters} are kept`);
}
