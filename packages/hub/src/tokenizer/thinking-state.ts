/** The tags that families put around reasoning. */
const tags = [
  ["<think>", "</think>"],
  ["[THINK]", "[/THINK]"],
] as const;

/**
 * The state at the end of a text: inside a block of reasoning, right after one, or neither. For a prompt it shows whether the
 * model begins by thinking, does not think, or is free to choose; for a prompt and its answer, whether it reached an answer.
 */
export function thinkingState(text: string): "inside" | "behind" | "none" {
  for (const [open, close] of tags) {
    const [opened, closed] = [text.lastIndexOf(open), text.lastIndexOf(close)];
    if (opened > closed) return "inside";
    if (closed >= 0 && text.slice(closed + close.length).trim() === "") return "behind";
  }
  return "none";
}
