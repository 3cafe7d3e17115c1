import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { fixture } from "../../test/support/fixtures.js";
import { readJsonObject, type JsonObject } from "../files/json.js";
import { parseTokenizer } from "./load-tokenizer.js";
import type { Tokenizer } from "./tokenizer.js";

type SplitCases = { text: string; ids: number[]; withSpecial?: number[] }[];

const asText = { splitSpecialTokens: true, addSpecialTokens: false };
const byteLevel = ["llama3", "digits", "prefix-space"];

async function load(name: string, change: (json: JsonObject) => object = () => ({})) {
  const json = await readJsonObject(fixture(`tokenizers/${name}.json`));
  return parseTokenizer({ tokenizer: { ...json, ...change(json) } });
}

describe.each([...byteLevel, "qwen", "sentencepiece", "unigram"])(
  "special tokens spelled in a text, with the %s vocabulary,",
  (name) => {
    let tokenizer: Tokenizer;

    beforeAll(async () => {
      tokenizer = await load(name);
    });

    it("are encoded like the reference encodes text", async () => {
      const file = await readFile(fixture(`tokenizers/${name}.cases.json`), "utf8");
      const { split }: { split: SplitCases } = JSON.parse(file);
      for (const { text, ids, withSpecial = ids } of split) {
        expect([...tokenizer.encode(text, asText)], text).toEqual(ids);
        expect([...tokenizer.encode(text, { splitSpecialTokens: true })], text).toEqual(
          withSpecial,
        );
      }
    });

    it("never become special tokens, in any context", () => {
      const special = new Map(tokenizer.specialTokens);
      const unknown = special.get("<unk>");
      const spelled = fc.constantFrom(...special.keys());
      const part = fc.oneof(spelled, fc.string({ maxLength: 3 }), fc.string({ unit: "grapheme" }));
      fc.assert(
        fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
          const text = parts.join("");
          const ids = tokenizer.encode(text, asText);
          const found = [...special.values()].filter((id) => id !== unknown && ids.includes(id));
          expect(found).toEqual([]);
          if (!byteLevel.includes(name)) return;
          const prefix = name === "prefix-space" && text !== "" && !text.startsWith(" ") ? " " : "";
          expect(tokenizer.decode(ids)).toBe(prefix + text);
        }),
      );
    });

    it("are recognised again by the next call without the option", () => {
      for (const [text, id] of tokenizer.specialTokens) {
        tokenizer.encode(text, asText);
        expect([...tokenizer.encode(text, { addSpecialTokens: false })]).toEqual([id]);
      }
    });
  },
);

it("added tokens that are not special are recognised in a text either way", async () => {
  const tokenizer = await load("qwen");
  const ids = [...tokenizer.encode("<think><|im_end|>", asText)];
  expect(ids[0]).toBe(tokenizer.tokenToId("<think>"));
  expect(ids).not.toContain(tokenizer.tokenToId("<|im_end|>"));
});

describe("a vocabulary that takes whole words before it merges", () => {
  const declare = (content: string, id: number) => (json: JsonObject) => {
    const model = json["model"] as { vocab: Record<string, number> };
    return {
      added_tokens: [{ id, content, special: true }],
      model: { ...model, vocab: { ...model.vocab, [content]: id } },
    };
  };

  it("does not encode a special token as such a word", async () => {
    const tokenizer = await load("llama3", declare("###", 600));
    const [sign = -1] = tokenizer.encode("#", asText);
    expect([...tokenizer.encode("###", { addSpecialTokens: false })]).toEqual([600]);
    expect([...tokenizer.encode("###", asText)]).toEqual([sign, sign, sign]);
  });

  it("keeps an ordinary token that is also declared special", async () => {
    const plain = await load("llama3");
    const [the = -1] = plain.encode(" the", { addSpecialTokens: false });
    const tokenizer = await load("llama3", declare("Ġthe", the));
    expect([...tokenizer.encode(" the", asText)]).toEqual([the]);
  });
});
