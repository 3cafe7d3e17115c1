const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|[\u{20000}-\u{3FFFD}]/u;
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const control = /[\u0000-\u001F\u007F-\u009F]/g;

/** Text without control characters, so that data of others cannot steer the terminal. */
export function printable(text: string): string {
  return text.replace(control, (character) => (character === "\n" ? "\u23CE" : "\uFFFD"));
}

/** How many columns a text takes. */
export function textWidth(text: string): number {
  // oxlint-disable-next-line no-control-regex -- plain ASCII, the common case
  if (/^[\u0020-\u007E]*$/.test(text)) return text.length;
  return [...segments(text)].reduce((sum, { segment }) => sum + widthOf(segment), 0);
}

/** The beginning of a text, with an ellipsis where something was cut off. */
export function truncate(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let kept = "";
  let room = width - 1;
  for (const { segment } of segments(text)) {
    room -= widthOf(segment);
    if (room < 0) break;
    kept += segment;
  }
  return `${kept}\u2026`;
}

/** A text filled up with spaces. */
export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

let segmenter: Intl.Segmenter | undefined;

/** What readers see as characters; plain texts never pay for the tables behind it. */
function segments(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

function widthOf(grapheme: string): number {
  return wide.test(grapheme) ? 2 : 1;
}
