/** The tags that families put around reasoning. */
const tags = [
  ["<think>", "</think>"],
  ["[THINK]", "[/THINK]"],
] as const;

/**
 * How a text leaves off: inside a block of reasoning, right behind one, or neither. Of a prompt it says whether the
 * model begins by thinking, does without, or is free to choose; of a prompt and its answer, whether it came to one.
 */
export function thinkingState(text: string): "inside" | "behind" | "none" {
  for (const [open, close] of tags) {
    const [opened, closed] = [text.lastIndexOf(open), text.lastIndexOf(close)];
    if (opened > closed) return "inside";
    if (closed >= 0 && text.slice(closed + close.length).trim() === "") return "behind";
  }
  return "none";
}
