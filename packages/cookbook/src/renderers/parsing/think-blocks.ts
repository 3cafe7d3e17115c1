import type { ContentPart, UnparsedToolCall } from "../message.js";
import { literal, type MarkSigns } from "./marked-text.js";

/** A piece of an answer: text, reasoning, or the body of a tool call. */
export type Block =
  | { readonly type: "text" | "thinking"; readonly text: string }
  | { readonly type: "call"; readonly text: string; readonly raw: string };

/** Splits an answer at its think blocks and tool calls; undefined when it has neither. */
export function splitBlocks(
  text: string,
  signs: MarkSigns,
  callTags?: readonly [open: string, close: string],
): Block[] | undefined {
  const [openThink, closeThink] = [signs.sign("<think>"), signs.sign("</think>")];
  const [openCall, closeCall] = (callTags ?? []).map((tag) => signs.sign(tag));
  const opens = [openThink, openCall].filter((open) => open !== undefined);
  if (!opens.some((open) => text.includes(open))) return undefined;
  const think = `${literal(openThink)}(?<thinking>.*?)${literal(closeThink)}`;
  const call = callTags ? `|${literal(openCall!)}(?<call>.*?)${literal(closeCall!)}` : "";
  const blocks: Block[] = [];
  let end = 0;
  for (const match of text.matchAll(new RegExp(think + call, "gs"))) {
    blocks.push({ type: "text", text: text.slice(end, match.index) });
    const { thinking, call: body } = match.groups ?? {};
    if (thinking !== undefined) blocks.push({ type: "thinking", text: thinking });
    else blocks.push({ type: "call", text: body ?? "", raw: match[0] });
    end = match.index + match[0].length;
  }
  blocks.push({ type: "text", text: text.slice(end) });
  return blocks.filter((block) => block.type === "call" || block.text !== "");
}

/** The parts of a content, with marks in them spelled out. */
export function partsOf(blocks: readonly Block[], signs: MarkSigns): ContentPart[] {
  return blocks.flatMap((block): ContentPart[] => {
    if (block.type === "call") return [];
    const text = signs.spell(block.text);
    return [block.type === "text" ? { type: "text", text } : { type: "thinking", thinking: text }];
  });
}

/** Longest excerpt of a model's text in an error. */
const longestExcerpt = 16_384;

/** An unterminated tool block of the first pair of tags that has one. */
export function findUnterminated(
  text: string,
  signs: MarkSigns,
  pairs: readonly (readonly [open: string, close: string])[],
): UnparsedToolCall | undefined {
  for (const [open, close] of pairs) {
    const [openSign, closeSign] = [signs.sign(open), signs.sign(close)];
    const opened = text.split(openSign).length - 1;
    if (opened === 0 || opened <= text.split(closeSign).length - 1) continue;
    const rawText = signs.spell(text.slice(text.lastIndexOf(openSign))).slice(0, longestExcerpt);
    return { rawText, error: `unterminated tool block: '${open}' opened without a '${close}'` };
  }
  return undefined;
}
