/*
 * JSON text with integers beyond 2^53. `JSON.parse` rounds them and `JSON.stringify` refuses bigints,
 * so such integers travel through both as marked strings. The mark holds a random part: no text of a
 * user can be mistaken for it. Texts without such integers take the plain, fast path.
 */

const mark = `\uE000${Math.random().toString(36).slice(2)}:`;
const bigIntegerPattern = /(?<![\w.+-])-?\d{16,}(?![\d.eE])/;
const numberPattern = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const markedPattern = new RegExp(`"${mark}(-?\\d+)"`, "g");

/** Parses JSON; integers beyond 2^53 become bigints. Throws `SyntaxError`. */
export function parseJson(text: string): unknown {
  if (!bigIntegerPattern.test(text)) return JSON.parse(text) as unknown;
  return JSON.parse(markBigIntegers(text), (_, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  ) as unknown;
}

/** Writes compact JSON; bigints become plain integers. */
export function stringifyJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // The one failure that can be mended; a replacer from the start would slow every other body down.
    if (!(error instanceof TypeError) || !error.message.includes("BigInt")) throw error;
    const text = JSON.stringify(value, (_, item: unknown) =>
      typeof item === "bigint" ? `${mark}${item}` : item,
    );
    return text.replace(markedPattern, "$1");
  }
}

/** Puts integers that a double cannot hold into marked quotes; strings are skipped as a whole. */
function markBigIntegers(text: string): string {
  const parts: string[] = [];
  let position = 0;
  while (position < text.length) {
    const quote = text.indexOf('"', position);
    const end = quote < 0 ? text.length : quote;
    parts.push(text.slice(position, end).replace(numberPattern, markNumber));
    if (quote < 0) break;
    position = endOfString(text, quote);
    parts.push(text.slice(quote, position));
  }
  return parts.join("");
}

function markNumber(literal: string): string {
  const isInteger = /^-?\d+$/.test(literal);
  return isInteger && !Number.isSafeInteger(Number(literal)) ? `"${mark}${literal}"` : literal;
}

function endOfString(text: string, quote: number): number {
  for (let end = text.indexOf('"', quote + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
  return text.length;
}
