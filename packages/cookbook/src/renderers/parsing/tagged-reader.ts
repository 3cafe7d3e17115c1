import { pythonStrip } from "@tinker-ts/hub";
import type { ContentPart, Message } from "../message.js";
import type { MarkSigns } from "./marked-text.js";
import { findUnterminated, partsOf, splitBlocks, type Block } from "./think-blocks.js";
import { callFields, readJsonCall, readXmlCall, type ReadCall } from "./tool-calls.js";

/** Framing of answers with `<think>` and `<tool_call>` blocks. */
export interface TaggedAnswers {
  /** The framing to strip around reasoning: nothing, newlines, or all blanks. */
  readonly frame: "none" | "lines" | "trim";
  /** The text between reasoning and answer. @default "" */
  readonly afterThinking?: string;
  /** The text between answer and first call. */
  readonly beforeCalls: string;
  /** The body of a call. */
  readonly calls: "json" | "xml";
}

const callTags = ["<tool_call>", "</tool_call>"] as const;

/** Parses an answer with reasoning and calls in tags, anywhere between text. */
export function readTagged(text: string, signs: MarkSigns, answers: TaggedAnswers): Message {
  const blocks = splitBlocks(text, signs, callTags);
  const dangling = findUnterminated(text, signs, [callTags]);
  return {
    role: "assistant",
    content: blocks ? readParts(blocks, signs, answers) : signs.spell(text),
    ...callFields([
      ...readCalls(blocks ?? [], signs, answers.calls),
      ...(dangling ? [dangling] : []),
    ]),
  };
}

function readParts(
  blocks: readonly Block[],
  signs: MarkSigns,
  answers: TaggedAnswers,
): ContentPart[] {
  const unframed = answers.frame === "none" ? blocks : unframe(blocks, answers);
  return partsOf(withoutSeparators(unframed, answers), signs);
}

/** Strips the newlines that frame reasoning; a block without any has no reasoning. */
function unframe(blocks: readonly Block[], answers: TaggedAnswers): Block[] {
  let isBehindBlock = false;
  let isBehindThinking = false;
  return blocks.map((block): Block => {
    if (block.type === "call") return block;
    if (block.type === "thinking") {
      isBehindBlock = true;
      const lines = pythonStrip(block.text, "strip", "\n");
      isBehindThinking ||= lines !== "";
      return { ...block, text: answers.frame === "trim" ? pythonStrip(lines) : lines };
    }
    let text = isBehindBlock ? pythonStrip(block.text, "lstrip", "\n") : block.text;
    const separator = answers.afterThinking ?? "";
    if (isBehindThinking && text.startsWith(separator)) text = text.slice(separator.length);
    isBehindBlock = false;
    isBehindThinking = false;
    return { ...block, text };
  });
}

/** Strips separators between text and calls; a text of separators only becomes empty. */
function withoutSeparators(blocks: readonly Block[], answers: TaggedAnswers): Block[] {
  return blocks.flatMap((block, index): Block[] => {
    if (block.type !== "text") return block.text === "" ? [] : [block];
    let { text } = block;
    const isBehindCall = blocks[index - 1]?.type === "call";
    const separator = isBehindCall ? "\n" : answers.beforeCalls;
    if (blocks[index + 1]?.type === "call" && text.endsWith(separator)) {
      text = text.slice(0, text.length - separator.length);
    }
    if (isBehindCall && text === "\n") text = "";
    return text === "" ? [] : [{ ...block, text }];
  });
}

/** Calls in JSON come first: some models mix both kinds. */
function readCalls(
  blocks: readonly Block[],
  signs: MarkSigns,
  kind: TaggedAnswers["calls"],
): ReadCall[] {
  const json: ReadCall[] = [];
  const xml: ReadCall[] = [];
  for (const block of blocks) {
    if (block.type !== "call") continue;
    const [body, raw] = [signs.spell(block.text), signs.spell(block.raw)];
    const call = readJsonCall(body, raw);
    if ("function" in call || kind === "json" || !raw.includes("<function=")) json.push(call);
    else xml.push(readXmlCall(body, raw));
  }
  return [...json, ...xml];
}
