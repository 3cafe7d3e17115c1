import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fixture } from "../../test/support/fixtures.js";
import { readJsonObject } from "../files/json.js";
import { parseTokenizer } from "./load-tokenizer.js";

const chatMl =
  "{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}{%- endfor -%}" +
  "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- if enable_thinking is defined and enable_thinking is false -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}{%- endif -%}";

async function tokenizerWith(template: string) {
  const tokenizer = await readJsonObject(fixture("tokenizers/qwen.json"));
  return parseTokenizer({ tokenizer, config: { chat_template: template } });
}

const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "Two and two?" },
  { role: "assistant", content: "Four." },
  { role: "user", content: "Sure?" },
  { role: "assistant", content: "Quite sure." },
];

describe("encoding a conversation", () => {
  it("marks exactly the assistant's text and end-of-turn tokens", async () => {
    const tokenizer = await tokenizerWith(chatMl);
    const { text, tokens, assistantMask } = await tokenizer.encodeChat(messages);
    expect(text).toBe(await tokenizer.renderChat(messages));
    expect(tokenizer.decode(tokens)).toBe(text);
    const said = tokens.filter((_, index) => assistantMask![index] === 1);
    expect(tokenizer.decode(said)).toBe("Four.<|im_end|>Quite sure.<|im_end|>");
  });

  it("leaves an opened turn unmarked", async () => {
    const tokenizer = await tokenizerWith(chatMl);
    const options = { addGenerationPrompt: true };
    const { text, assistantMask } = await tokenizer.encodeChat(messages.slice(0, 4), options);
    expect(text.endsWith("<|im_start|>assistant\n")).toBe(true);
    expect(assistantMask!.at(-1)).toBe(0);
    expect(assistantMask).toContain(1);
  });

  it("handles an opening that only new answers get", async () => {
    const tokenizer = await tokenizerWith(chatMl);
    const options = { variables: { enable_thinking: false } };
    const { tokens, assistantMask } = await tokenizer.encodeChat(messages, options);
    const said = tokens.filter((_, index) => assistantMask![index] === 1);
    expect(tokenizer.decode(said)).toBe("Four.<|im_end|>Quite sure.<|im_end|>");
  });

  it("gives no mask when a template rewrites earlier turns", async () => {
    const onlyLast =
      "{%- for message in messages -%}{{- message.role + ': ' + (message.content if loop.last else 'cut') + '\\n' -}}{%- endfor -%}";
    const tokenizer = await tokenizerWith(onlyLast);
    const { tokens, assistantMask } = await tokenizer.encodeChat(messages);
    expect(tokens.length).toBeGreaterThan(0);
    expect(assistantMask).toBeNull();
  });

  it("marks nothing when a template refuses the part before the assistant's first turn", async () => {
    const tokenizer = await tokenizerWith(
      `{%- if messages | length == 0 -%}{{- raise_exception('empty') -}}{%- endif -%}${chatMl}`,
    );
    const { assistantMask } = await tokenizer.encodeChat([{ role: "assistant", content: "Hi" }]);
    expect(assistantMask).toBeNull();
  });

  it("a prompt is a prefix of the conversation that follows", async () => {
    const tokenizer = await tokenizerWith(chatMl);
    const content = fc.string({ unit: "grapheme", maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(content, content, async (question, answer) => {
        const asked = [{ role: "user", content: question }];
        const prompt = await tokenizer.encodeChat(asked, { addGenerationPrompt: true });
        const whole = await tokenizer.encodeChat([
          ...asked,
          { role: "assistant", content: answer },
        ]);
        expect(whole.text.startsWith(prompt.text)).toBe(true);
        const first = whole.assistantMask!.indexOf(1);
        expect(first).toBeLessThanOrEqual(prompt.tokens.length);
        expect(whole.tokens.slice(0, first)).toEqual(prompt.tokens.slice(0, first));
      }),
    );
  });
});
