import { ApiError } from "../errors/api-error.js";

/** What is made within some ten milliseconds: things, and numbers and texts, which take less time each. */
const [maxParts, maxEntries] = [60_000, 300_000];

/** Lists in lists, and objects in objects: they are followed by calls inside calls. */
const maxDepth = 1000;

const [quote, backslash, colon, comma] = Buffer.from('"\\:,');
const [openList, closeList, openObject, closeObject] = Buffer.from("[]{}");

/** Refuses JSON of which a short text makes a great many things, before the event loop makes them. */
export function checkJsonParts(json: string): void {
  let [parts, entries, depth] = [0, 0, 0];
  let isText = false;
  for (let place = 0; place < json.length; place++) {
    const code = json.charCodeAt(place);
    if (isText) {
      if (code === backslash) place++;
      else if (code === quote) isText = false;
      continue;
    }
    switch (code) {
      case quote:
        isText = true;
        break;
      case openList:
      case openObject:
        if (++parts > maxParts) throw tooMany("objects, lists and fields", maxParts);
        if (++depth > maxDepth) throw tooMany("lists and objects inside each other", maxDepth);
        break;
      case closeList:
      case closeObject:
        depth--;
        break;
      case colon:
        if (++parts > maxParts) throw tooMany("objects, lists and fields", maxParts);
        break;
      case comma:
        if (++entries > maxEntries) throw tooMany("entries", maxEntries);
        break;
    }
  }
}

function tooMany(what: string, most: number): ApiError {
  return new ApiError(413, `the JSON has more than ${most} ${what}, which is as many as are taken`);
}
