import { ApiError } from "../errors/api-error.js";

/** What is shorter unfolds to little whatever it says. */
const smallLength = 64 * 1024;

/** Objects, lists and fields that are made within a few dozen milliseconds. */
const maxParts = 60_000;

const [quote, backslash, colon, bracket, brace] = Buffer.from('"\\:[{');

/**
 * Refuses JSON of which a short text makes a great many things, before the event loop makes them. Texts and
 * numbers are not counted: they take hardly more time than space.
 */
export function checkJsonParts(json: string): void {
  if (json.length <= smallLength) return;
  let parts = 0;
  let isText = false;
  for (let place = 0; place < json.length; place++) {
    const code = json.charCodeAt(place);
    if (isText) {
      if (code === backslash) place++;
      else if (code === quote) isText = false;
    } else if (code === quote) isText = true;
    else if (code === colon || code === bracket || code === brace) parts++;
  }
  if (parts <= maxParts) return;
  throw new ApiError(
    413,
    `the JSON has ${parts} objects, lists and fields; at most ${maxParts} are taken at a time`,
  );
}
