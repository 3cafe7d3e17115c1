import { parseTokenizer, type Tokenizer } from "@tinker-ts/hub";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { marks, renderMessages } from "../src/corpus/chat.js";
import { textOf, writeDocument } from "../src/corpus/documents.js";
import {
  countWords,
  markIds,
  tokenizerConfigJson,
  tokenizerJson,
} from "../src/tokenizer/tokenizer-files.js";
import { trainBpe } from "../src/tokenizer/train-bpe.js";

describe("trainBpe", () => {
  it("merges the most frequent neighbours first", () => {
    const merges = trainBpe(
      new Map([
        ["aab", 5],
        ["ab", 4],
        ["cd", 6],
      ]),
      3,
    );
    expect(merges).toEqual([
      ["a", "b"],
      ["c", "d"],
      ["a", "ab"],
    ]);
  });

  it("merges repeated letters from the left", () => {
    expect(trainBpe(new Map([["aaaa", 2]]), 2)).toEqual([
      ["a", "a"],
      ["aa", "aa"],
    ]);
  });

  it("ends when no pair occurs twice", () => {
    expect(trainBpe(new Map([["xy", 1]]), 10)).toEqual([]);
  });

  it("cuts other scripts into bytes", () => {
    const bytes = Buffer.from("é").toString("latin1").split("");
    expect(trainBpe(new Map([["é", 3]]), 1)).toEqual([bytes]);
  });
});

describe("the tokenizer", () => {
  const mergeCount = 300;
  let tokenizer: Tokenizer;

  beforeAll(async () => {
    const texts = Array.from({ length: 500 }, (_, i) => textOf(writeDocument("training", i)));
    const merges = trainBpe(countWords(texts), mergeCount);
    tokenizer = await parseTokenizer({
      tokenizer: { ...tokenizerJson(merges) },
      config: { ...tokenizerConfigJson(1024) },
      chatTemplate: null,
    });
  });

  it("gives back any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const ids = tokenizer.encode(text, { splitSpecialTokens: true });
        expect(tokenizer.decode(ids)).toBe(text);
      }),
    );
  });

  it("has a token of its own for each mark, after all others", () => {
    const ids = markIds(mergeCount);
    for (const mark of ["documentEnd", "turnStart", "turnEnd"] as const) {
      expect([...tokenizer.encode(marks[mark])]).toEqual([ids[mark]]);
    }
    expect(tokenizer.vocabSize).toBe(ids.turnEnd + 1);
  });

  it("reads numbers digit by digit", () => {
    expect(tokenizer.encode("12345")).toHaveLength(5);
  });

  it("renders conversations as the corpus writes them", async () => {
    const messages = [
      { role: "system", content: "You are Sprout." },
      { role: "user", content: "Hello!" },
      { role: "assistant", content: "Hello! How can I help you?" },
    ] as const;
    const written = (count: number) =>
      renderMessages(messages.slice(0, count))
        .map(({ text }) => text)
        .join("");
    expect(await tokenizer.renderChat(messages)).toBe(written(3));
    expect(await tokenizer.renderChat(messages.slice(0, 2), { addGenerationPrompt: true })).toBe(
      `${written(2)}${marks.turnStart}assistant\n`,
    );
  });
});
