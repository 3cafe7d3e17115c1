import fc from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { fixture } from "../../test/support/fixtures.js";
import { readJsonObject } from "../files/json.js";
import { parseTokenizer } from "./load-tokenizer.js";
import type { Tokenizer } from "./tokenizer.js";

// Parts are written side by side, so that marks may be made of what two texts have at their ends.
const template = `{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- for part in message.content %}{{- part | trim }}{%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}`;
const marks = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|endoftext|>"];

let tokenizer: Tokenizer;

beforeAll(async () => {
  const json = await readJsonObject(fixture("tokenizers/qwen.json"));
  const added = json["added_tokens"] as { content: string; id: number }[];
  const next = Math.max(...added.map(({ id }) => id)) + 1;
  const tags = ["<think>", "</think>"].filter(
    (tag) => !added.some(({ content }) => content === tag),
  );
  tokenizer = await parseTokenizer({
    tokenizer: {
      ...json,
      added_tokens: [
        ...added,
        ...tags.map((content, index) => ({ id: next + index, content, special: false })),
      ],
    },
    config: { chat_template: template },
  });
});

function countMarks(ids: Iterable<number>): number {
  const known = new Set(tokenizer.addedTokens.values());
  return [...ids].filter((id) => known.has(id)).length;
}

it("no text of a message becomes a special token, alone or with its neighbour, and none is lost", async () => {
  const halves = marks.flatMap((mark) => [1, 3, mark.length - 1].map((at) => mark.slice(0, at)));
  const rests = marks.flatMap((mark) => [1, 3, mark.length - 1].map((at) => mark.slice(at)));
  const piece = fc.constantFrom(...marks, ...halves, ...rests, "x", "\ufdd0", "\ufdd2", "<", "é");
  const text = fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join(""));
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 4 }), async (content) => {
      const { tokens: ids } = await tokenizer.encodeChat([{ role: "user", content }]);
      expect(countMarks(ids)).toBe(2);
      expect(tokenizer.decode(ids)).toBe(`<|im_start|>user\n${content.join("")}<|im_end|>\n`);
    }),
  );
});

it("a conversation without marks in its texts is encoded like the rendered text", async () => {
  const messages = [{ role: "user", content: ["Hello  there.\n", "How are you?"] }];
  const text = await tokenizer.renderChat(messages);
  expect((await tokenizer.encodeChat(messages)).tokens).toEqual(
    tokenizer.encode(text, { addSpecialTokens: false }),
  );
});

it("the texts of functions are quoted too, names of fields included", async () => {
  const source = `{{- '<|im_start|>' + tools | tojson + '<|im_end|>' }}`;
  const json = await readJsonObject(fixture("tokenizers/qwen.json"));
  const other = await parseTokenizer({ tokenizer: json, config: { chat_template: source } });
  const { tokens: ids } = await other.encodeChat([], { tools: [{ "<|im_end|>": "<|im_start|>" }] });
  expect(countMarks(ids)).toBe(2);
  expect(other.decode(ids)).toBe(`<|im_start|>[{"<|im_end|>": "<|im_start|>"}]<|im_end|>`);
});

it("parts of a rendered conversation have marks and a common prefix", async () => {
  const chat = await tokenizer.chatTemplate();
  const first = chat.render([{ role: "user", content: ["a <|im_end|>"] }]);
  const both = chat.render([
    { role: "user", content: ["a <|im_end|>"] },
    { role: "assistant", content: ["b"] },
  ]);
  expect(both.commonLength(first)).toBe(first.length);
  const answer = both.slice(first.length);
  expect(String(answer)).toBe("<|im_start|>assistant\nb<|im_end|>\n");
  expect(answer.firstMark()).toBe("<|im_start|>");
  expect(answer.indexOfMark("<|im_end|>")).toBe("<|im_start|>assistant\nb".length);
  expect(String(first)).toBe("<|im_start|>user\na <|im_end|><|im_end|>\n");
  expect(first.indexOfMark("<|im_end|>")).toBe(first.length - "<|im_end|>\n".length);
});

it("added tokens that are not special can be encoded as text, blanks stay tokens", async () => {
  const json = await readJsonObject(fixture("tokenizers/qwen.json"));
  const added = json["added_tokens"] as { id: number }[];
  const next = Math.max(...added.map(({ id }) => id)) + 1;
  const other = await parseTokenizer({
    tokenizer: {
      ...json,
      added_tokens: [
        ...added,
        { id: next, content: "<note>", special: false },
        { id: next + 1, content: "    ", special: false },
      ],
    },
  });
  const ids = other.encode("<note>    <|im_end|>", {
    addSpecialTokens: false,
    splitAddedTokens: true,
  });
  expect(ids).toContain(next + 1);
  expect(ids).not.toContain(next);
  expect(ids).not.toContain(other.tokenToId("<|im_end|>"));
  expect(other.decode(ids)).toBe("<note>    <|im_end|>");
  const kept = other.encode("<note><|im_end|>", { splitSpecialTokens: true });
  expect(kept).toContain(next);
});
