/** Longest name that is shown whole. */
const maxNameLength = 200;

// Format characters (zero-width, direction-changing, tags), control characters, the two separators, lone surrogates.
const hidden = /[\p{Cf}\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/gu;
const shown = new Set(["\t", "\n", "\r"]);
const joiner = "\u200d";
const emoji = /\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\ufe0f)?$/u;

/**
 * Text of unknown origin as it is shown: invisible characters, and those that change the text direction, become
 * escapes. A joiner inside an emoji is part of the picture and stays.
 */
export function visible(text: string): string {
  return text.replace(hidden, (character, offset: number) => {
    if (shown.has(character)) return character;
    if (character === joiner && emoji.test(text.slice(Math.max(0, offset - 4), offset)))
      return character;
    const code = character.codePointAt(0)!;
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** A name on one line, cut where it is too long. */
export function visibleName(name: string): string {
  const line = visible(name).replace(/\s+/g, " ");
  return line.length > maxNameLength ? `${line.slice(0, maxNameLength)}…` : line;
}
