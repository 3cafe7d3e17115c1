/** Python's white space; JavaScript's differs in U+001C to U+001F, U+0085 and U+FEFF. */
const blank = new Set(
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000",
);

/** The ends of a text to strip. */
export type StripSide = "strip" | "lstrip" | "rstrip";

/** Python's `strip`, `lstrip` and `rstrip`: blanks, or any of the given characters, are removed from the ends. */
export function pythonStrip(text: string, side: StripSide = "strip", characters?: string): string {
  const set = characters === undefined ? blank : new Set(characters);
  // Whole characters: an emoji of two code units is one.
  const units = set === blank ? text : Array.from(text);
  let start = 0;
  let end = units.length;
  if (side !== "rstrip") while (start < end && set.has(units[start]!)) start++;
  if (side !== "lstrip") while (end > start && set.has(units[end - 1]!)) end--;
  const kept = units.slice(start, end);
  return typeof kept === "string" ? kept : kept.join("");
}
