import { StubTokenizer } from "./stub-tokenizer.js";

const chatMl = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"];
/** What the tokenizers of these families have besides characters. */
const vocabularies: Readonly<Record<string, { bos: string | null; marks: readonly string[] }>> = {
  lfm2: {
    bos: "<|startoftext|>",
    marks: ["<|startoftext|>", ...chatMl, "<|tool_call_start|>", "<|tool_call_end|>"],
  },
  granite4: {
    bos: null,
    marks: [
      "<|start_of_role|>",
      "<|end_of_role|>",
      "<|end_of_text|>",
      "<tool_call>",
      "</tool_call>",
    ],
  },
  olmo3: {
    bos: null,
    marks: [...chatMl, "<|endoftext|>", "<function_calls>", "</function_calls>"],
  },
  ministral3: {
    bos: "<s>",
    marks: [
      "<s>",
      "</s>",
      "[INST]",
      "[/INST]",
      "[SYSTEM_PROMPT]",
      "[/SYSTEM_PROMPT]",
      "[TOOL_CALLS]",
      "[ARGS]",
      "[THINK]",
      "[/THINK]",
    ],
  },
  minicpm5: { bos: "<s>", marks: ["<s>", ...chatMl] },
};

/** The families with public templates. */
export const families: readonly string[] = Object.keys(vocabularies);

/** A tokenizer for a renderer of one of them. */
export function tokenizerOf(renderer: string): StubTokenizer {
  const family = families.find((name) => renderer.startsWith(name));
  const { bos, marks } = vocabularies[family ?? ""] ?? { bos: null, marks: [] };
  return new StubTokenizer({ special: marks, added: [], bos, eos: null });
}
