import { writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { hubErrorOf } from "../../test/support/expect-hub-error.js";
import { fixture } from "../../test/support/fixtures.js";
import { useTemporaryFolder } from "../../test/support/temporary-folder.js";
import { readJsonObject } from "../files/json.js";
import { loadTokenizer, parseTokenizer, type TokenizerFiles } from "./load-tokenizer.js";

const inFolder = useTemporaryFolder();

const chatMl = `{%- if tools %}
    {{- '<tools>' + tools | tojson + '</tools>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role not in ['system', 'user', 'assistant'] %}
        {{- raise_exception('unknown role ' + message.role) }}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + eos_token + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
`;

async function tokenizerWith(files: Omit<TokenizerFiles, "tokenizer">) {
  const tokenizer = await readJsonObject(fixture("tokenizers/qwen.json"));
  return parseTokenizer({ tokenizer, ...files });
}

const config = { eos_token: { content: "<|im_end|>" }, chat_template: chatMl };
const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: " Hi! " },
];
const rendered = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n";

describe("rendering a conversation", () => {
  it("follows the template with the model's own tokens", async () => {
    const tokenizer = await tokenizerWith({ config });
    expect(await tokenizer.renderChat(messages)).toBe(rendered);
  });

  it("opens the assistant's turn, passes tools and other variables", async () => {
    const tokenizer = await tokenizerWith({ config });
    const text = await tokenizer.renderChat(messages, {
      addGenerationPrompt: true,
      tools: [{ name: "add" }],
      variables: { enable_thinking: false },
    });
    expect(text).toBe(
      `<tools>[{"name": "add"}]</tools>\n${rendered}<|im_start|>assistant\n<think>\n\n</think>\n\n`,
    );
  });

  it("prefers the template of the separate file", async () => {
    const tokenizerJson = await readJsonObject(fixture("tokenizers/qwen.json"));
    await writeFile(inFolder("tokenizer.json"), JSON.stringify(tokenizerJson));
    await writeFile(inFolder("tokenizer_config.json"), JSON.stringify(config));
    const tokenizer = await loadTokenizer(inFolder());
    expect(await tokenizer.renderChat(messages)).toBe(rendered);
    await writeFile(inFolder("chat_template.jinja"), "{{ messages[0].content }}");
    const other = await loadTokenizer(inFolder());
    expect(await other.renderChat(messages)).toBe("Be brief.");
  });

  it("chooses among several templates by name", async () => {
    const templates = [
      { name: "default", template: "plain" },
      { name: "tool_use", template: "tools" },
    ];
    const tokenizer = await tokenizerWith({ config: { chat_template: templates } });
    expect(await tokenizer.renderChat(messages)).toBe("plain");
    expect(await tokenizer.renderChat(messages, { template: "tool_use" })).toBe("tools");
    const unknown = () => tokenizer.renderChat(messages, { template: "rag" });
    expect(await hubErrorOf("no_chat_template", unknown)).toContain("default, tool_use");
  });

  it("reports errors of the template, and a model without one", async () => {
    const tokenizer = await tokenizerWith({ config });
    const unknownRole = () => tokenizer.renderChat([{ role: "robot", content: "" }]);
    expect(await hubErrorOf("chat_template_failed", unknownRole)).toContain("unknown role robot");
    const bare = await tokenizerWith({});
    await hubErrorOf("no_chat_template", () => bare.renderChat(messages));
  });
});
