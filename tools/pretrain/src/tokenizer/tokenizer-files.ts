import { chatTemplate, marks } from "../corpus/chat.js";
import type { Merge } from "./train-bpe.js";

/**
 * Where a text is cut before merging: words keep the space before them; digits and signs stand alone, so
 * that numbers and formats are read sign by sign.
 */
export const wordPattern = " ?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/** How often each word occurs in texts; marks are no words. */
export function countWords(texts: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  const markPattern = new RegExp(
    Object.values(marks)
      .map((mark) => mark.replaceAll("|", "\\|"))
      .join("|"),
  );
  for (const text of texts) {
    for (const part of text.split(markPattern)) {
      for (const [word] of part.matchAll(new RegExp(wordPattern, "gu"))) {
        counts.set(word, (counts.get(word) ?? 0) + 1);
      }
    }
  }
  return counts;
}

/** Token ids: bytes first, then merges, then marks. */
export function markIds(mergeCount: number): Readonly<Record<keyof typeof marks, number>> {
  const first = 256 + mergeCount;
  return { documentEnd: first, turnStart: first + 1, turnEnd: first + 2 };
}

/** The contents of `tokenizer.json`. */
export function tokenizerJson(merges: readonly Merge[]): object {
  const spelled = merges.map((pair) => pair.map(spell));
  const tokens = [...byteCharacters, ...spelled.map((pair) => pair.join(""))];
  const ids = markIds(merges.length);
  const addedTokens = (["documentEnd", "turnStart", "turnEnd"] as const).map((mark) => ({
    id: ids[mark],
    content: marks[mark],
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: addedTokens,
    normalizer: null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: wordPattern }, behavior: "Isolated", invert: false },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: "",
      end_of_word_suffix: "",
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: spelled,
    },
  };
}

/** The contents of `tokenizer_config.json`. */
export function tokenizerConfigJson(contextLength: number): object {
  return {
    tokenizer_class: "PreTrainedTokenizerFast",
    model_max_length: contextLength,
    bos_token: null,
    eos_token: marks.turnEnd,
    pad_token: marks.documentEnd,
    unk_token: null,
    clean_up_tokenization_spaces: false,
    chat_template: chatTemplate,
  };
}

/** Bytes as byte-level tokenizers spell them: printable ones as themselves, the others from U+0100 on. */
const byteCharacters: readonly string[] = spellBytes();

function spellBytes(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    return String.fromCharCode(printable ? byte : next++);
  });
}

function spell(bytes: string): string {
  return Array.from(bytes, (byte) => byteCharacters[byte.charCodeAt(0)]).join("");
}
