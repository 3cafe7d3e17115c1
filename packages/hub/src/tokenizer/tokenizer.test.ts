import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { hubErrorOf } from "../../test/support/expect-hub-error.js";
import { fixture } from "../../test/support/fixtures.js";
import { readJsonObject } from "../files/json.js";
import { loadTokenizer, parseTokenizer } from "./load-tokenizer.js";
import type { Tokenizer } from "./tokenizer.js";

interface Cases {
  vocabSize: number;
  encode: { text: string; ids: number[]; withSpecial?: number[]; decoded?: string }[];
  decode: { ids: number[]; text: string; withoutSpecial?: string }[];
}

async function loadFixture(name: string): Promise<Tokenizer> {
  return parseTokenizer({ tokenizer: await readJsonObject(fixture(`tokenizers/${name}.json`)) });
}

const byteLevel = ["llama3", "qwen", "digits", "prefix-space"];

describe.each([...byteLevel, "sentencepiece", "unigram"])("the %s vocabulary", (name) => {
  let tokenizer: Tokenizer;
  let cases: Cases;

  beforeAll(async () => {
    tokenizer = await loadFixture(name);
    cases = JSON.parse(await readFile(fixture(`tokenizers/${name}.cases.json`), "utf8"));
  });

  it("has the reference's number of tokens, each with an id of its own", () => {
    expect(tokenizer.vocabSize).toBe(cases.vocabSize);
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      expect(tokenizer.tokenToId(tokenizer.idToToken(id) ?? "")).toBe(id);
    }
  });

  it("encodes like the reference, with and without special tokens", () => {
    for (const { text, ids, withSpecial = ids } of cases.encode) {
      expect([...tokenizer.encode(text, { addSpecialTokens: false })], text).toEqual(ids);
      expect([...tokenizer.encode(text)], text).toEqual(withSpecial);
    }
  });

  it("decodes like the reference, with and without special tokens", () => {
    for (const { text, ids, decoded = text } of cases.encode) {
      expect(tokenizer.decode(ids)).toBe(decoded);
    }
    for (const { ids, text, withoutSpecial = text } of cases.decode) {
      expect(tokenizer.decode(ids), String(ids)).toBe(text);
      expect(tokenizer.decode(ids, { skipSpecialTokens: true })).toBe(withoutSpecial);
    }
  });

  it("decodes token by token to the same text as at once", () => {
    const id = fc.nat(cases.vocabSize + 5);
    const chunks = fc.array(fc.oneof(id, fc.array(id, { maxLength: 4 })), { maxLength: 20 });
    fc.assert(
      fc.property(chunks, fc.boolean(), (list, skipSpecialTokens) => {
        const decoder = tokenizer.incrementalDecoder({ skipSpecialTokens });
        const deltas = list.map((chunk) => decoder.push(chunk));
        const whole = tokenizer.decode(list.flat(), { skipSpecialTokens });
        expect(deltas.join("") + decoder.flush()).toBe(whole);
      }),
      { numRuns: 500 },
    );
  });

  it("never shows a part of a character while text grows", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 12 });
    fc.assert(
      fc.property(text, (original) => {
        const ids = tokenizer.encode(original, { addSpecialTokens: false });
        const whole = tokenizer.decode(ids);
        fc.pre(!whole.includes("\ufffd"));
        const decoder = tokenizer.incrementalDecoder();
        let shown = "";
        for (const id of ids) {
          shown += decoder.push(id);
          expect(whole.startsWith(shown)).toBe(true);
          expect(shown).toBe(Buffer.from(shown).toString());
        }
        expect(decoder.flush()).toBe(whole.slice(shown.length));
      }),
    );
  });
});

describe("text and bytes", () => {
  it.each(byteLevel.filter((name) => name !== "qwen"))(
    "any text survives the byte-level vocabulary %s",
    async (name) => {
      const tokenizer = await loadFixture(name);
      fc.assert(
        fc.property(fc.string({ unit: "binary" }), (text) => {
          const prefix = name === "prefix-space" && text !== "" && !text.startsWith(" ") ? " " : "";
          const ids = tokenizer.encode(text, { addSpecialTokens: false });
          expect(tokenizer.decode(ids)).toBe(prefix + text);
        }),
      );
    },
  );

  it("the joined bytes of tokens are the text", async () => {
    for (const name of byteLevel) {
      const tokenizer = await loadFixture(name);
      const ids = tokenizer.encode("Größe 你好 👩‍👩‍👧‍👦<|im_end|>", { addSpecialTokens: false });
      const bytes = Buffer.concat([...ids].map((id) => tokenizer.tokenBytes(id)));
      expect(bytes.toString()).toBe(tokenizer.decode(ids));
    }
  });

  it("a token's text in the middle of a text keeps its space", async () => {
    const sentencepiece = await loadFixture("sentencepiece");
    const [first = -1] = sentencepiece.encode("the", { addSpecialTokens: false });
    expect(sentencepiece.tokenText(first)).toBe(" the");
    expect(sentencepiece.decode([first])).toBe("the");
    const byte = sentencepiece.tokenToId("<0xE4>") ?? -1;
    expect([...sentencepiece.tokenBytes(byte)]).toEqual([0xe4]);
    expect(sentencepiece.tokenText(byte)).toBe("\ufffd");
  });

  it("ids beyond the vocabulary give no text, and other numbers are refused", async () => {
    const tokenizer = await loadFixture("qwen");
    expect(tokenizer.idToToken(100_000)).toBeNull();
    expect(tokenizer.tokenBytes(100_000)).toHaveLength(0);
    expect(tokenizer.decode([100_000, ...tokenizer.encode("a")])).toBe("a");
    for (const id of [-1, 0.5, NaN]) {
      expect(await hubErrorOf("invalid_token", () => tokenizer.decode([id]))).toContain(`${id}`);
    }
  });

  it("an unfinished character is held until the end and then replaced", async () => {
    const tokenizer = await loadFixture("llama3");
    const [first = -1, ...rest] = tokenizer.encode("𝒳", { addSpecialTokens: false });
    const decoder = tokenizer.incrementalDecoder();
    expect(rest.length).toBeGreaterThan(1);
    expect(decoder.push(first)).toBe("");
    expect(decoder.push(tokenizer.encode("a", { addSpecialTokens: false }))).toBe("\ufffda");
    expect(decoder.push(first)).toBe("");
    expect(decoder.flush()).toBe("\ufffd");
  });
});

describe("a model folder", () => {
  it("gives tokenizer, special tokens and the tokens with a purpose", async () => {
    const tokenizer = await loadTokenizer(fixture("model"));
    expect(tokenizer.namedTokens).toEqual({
      bos: null,
      eos: { text: "<|im_end|>", id: 2 },
      pad: { text: "<|endoftext|>", id: 0 },
      unk: null,
    });
    expect([...tokenizer.specialTokens.keys()]).toEqual([
      "<|endoftext|>",
      "<|im_start|>",
      "<|im_end|>",
    ]);
    expect(tokenizer.turnEnds).toEqual([2, 0]);
    expect(tokenizer.vocabSize).toBe(310);
  });

  it("without tokenizer.json is refused", async () => {
    const message = await hubErrorOf("tokenizer_missing", () => loadTokenizer(fixture("")));
    expect(message).toContain("tokenizer.json");
  });
});
