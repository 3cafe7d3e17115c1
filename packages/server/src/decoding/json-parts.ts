import { ApiError } from "../errors/api-error.js";

/** What is shorter unfolds to little whatever it says. */
const smallLength = 64 * 1024;

/** What is made within some ten milliseconds: things, and numbers and texts, which take less time each. */
const limits = [
  { most: 60_000, what: "objects, lists and fields", marks: ":[{" },
  { most: 300_000, what: "entries", marks: "," },
] as const;

const [quote, backslash] = Buffer.from('"\\');

/** Refuses JSON of which a short text makes a great many things, before the event loop makes them. */
export function checkJsonParts(json: string): void {
  if (json.length <= smallLength) return;
  const left = limits.map(({ most }) => most);
  let isText = false;
  for (let place = 0; place < json.length; place++) {
    const code = json.charCodeAt(place);
    if (isText) {
      if (code === backslash) place++;
      else if (code === quote) isText = false;
    } else if (code === quote) isText = true;
    else {
      const limit = limitOf[code];
      if (limit !== undefined && --left[limit]! < 0) throw tooMany(limits[limit]!);
    }
  }
}

/** Which limit counts a character. */
const limitOf: readonly (number | undefined)[] = Array.from({ length: 128 }, (_, code) => {
  const limit = limits.findIndex(({ marks }) => marks.includes(String.fromCharCode(code)));
  return limit < 0 ? undefined : limit;
});

function tooMany({ most, what }: (typeof limits)[number]): ApiError {
  return new ApiError(
    413,
    `the JSON has more than ${most} ${what}, which is as many as are taken at a time`,
  );
}
