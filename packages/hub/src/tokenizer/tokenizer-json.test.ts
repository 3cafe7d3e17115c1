import { describe, expect, it } from "vitest";
import { hubErrorOf } from "../../test/support/expect-hub-error.js";
import { fixture } from "../../test/support/fixtures.js";
import { readJsonObject } from "../files/json.js";
import { parseTokenizer } from "./load-tokenizer.js";

const added = { id: 500, content: "<w>", special: true };

const refused: [what: string, change: object, words: string[]][] = [
  [
    "a word-piece model",
    { model: { type: "WordPiece", vocab: {} } },
    ["WordPiece", "BPE, Unigram"],
  ],
  [
    "an unknown normalizer",
    { normalizer: { type: "BertNormalizer" } },
    ["normalizer", "BertNormalizer"],
  ],
  [
    "an unknown part of a sequence",
    { pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "Whitespace" }] } },
    ["pre_tokenizer", "Whitespace"],
  ],
  [
    "a way of splitting that is not supported",
    { pre_tokenizer: { type: "Split", pattern: { String: " " }, behavior: "MergedWithNext" } },
    ["behavior", "MergedWithNext"],
  ],
  [
    "a pattern that is not a regular expression",
    { pre_tokenizer: { type: "Split", pattern: { Regex: "(" }, behavior: "Isolated" } },
    ["tokenizer.json"],
  ],
  ["an unknown decoder", { decoder: { type: "CTC" } }, ["decoder", "CTC", "ByteLevel"]],
  [
    "a strip of tokens",
    { decoder: { type: "Strip", content: " ", start: 1, stop: 0 } },
    ["Strip", "Fuse"],
  ],
  [
    "a strip of the end",
    {
      decoder: {
        type: "Sequence",
        decoders: [{ type: "Fuse" }, { type: "Strip", content: " ", stop: 1 }],
      },
    },
    ["stop"],
  ],
  [
    "a decoder with a regular expression",
    { decoder: { type: "Replace", pattern: { Regex: "a" }, content: "b" } },
    ["pattern", "Regex"],
  ],
  [
    "added tokens that match whole words only",
    { added_tokens: [{ ...added, single_word: true }] },
    ["<w>", "single_word"],
  ],
  ["dropout", { model: { type: "BPE", vocab: {}, merges: [], dropout: 0.1 } }, ["dropout", "0.1"]],
  [
    "word endings",
    { model: { type: "BPE", vocab: {}, merges: [], end_of_word_suffix: "</w>" } },
    ["end_of_word_suffix"],
  ],
];

describe("a tokenizer.json is refused by name for", () => {
  it.each(refused)("%s", async (_, change, words) => {
    const json = { ...(await readJsonObject(fixture("tokenizers/qwen.json"))), ...change };
    const message = await hubErrorOf("unsupported_tokenizer", () =>
      parseTokenizer({ tokenizer: json }),
    );
    for (const word of words) expect(message).toContain(word);
  });
});

it("padding and truncation left in the file do not change an encoding", async () => {
  const json = await readJsonObject(fixture("tokenizers/qwen.json"));
  const padding = { strategy: { Fixed: 64 }, direction: "Right", pad_id: 0, pad_token: "!" };
  const truncation = { max_length: 1, stride: 0, strategy: "LongestFirst", direction: "Right" };
  const plain = await parseTokenizer({ tokenizer: json });
  const padded = await parseTokenizer({ tokenizer: { ...json, padding, truncation } });
  expect(padded.encode("The quick fox")).toEqual(plain.encode("The quick fox"));
});
