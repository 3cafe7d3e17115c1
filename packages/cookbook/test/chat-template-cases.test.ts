import { readFileSync } from "node:fs";
import {
  getRenderer,
  listRenderers,
  type Message,
  type ToolSpec,
} from "@tinker-ts/cookbook/renderers";
import { describe, expect, it } from "vitest";
import { toMessage } from "./support/renderer-cases.js";
import { families, tokenizerOf } from "./support/template-tokenizers.js";

// Conversations rendered by the public templates of models. Text ends where a model's answer does, or with its prompt.

interface TemplateCase {
  readonly renderer: string;
  readonly source: string;
  readonly title: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly tools?: readonly ToolSpec[];
  readonly system_prompt?: string;
  readonly text: string;
}

const file: { readonly cases: readonly TemplateCase[] } = JSON.parse(
  readFileSync(new URL("fixtures/chat-templates.json", import.meta.url), "utf8"),
);

/** The text of a message without its reasoning. */
function textOf({ content }: Pick<Message, "content">): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

const renderers = [...new Set(file.cases.map(({ renderer }) => renderer))];

it("has cases of every renderer of these families that has a template", () => {
  const own = listRenderers().filter((name) => families.some((family) => name.startsWith(family)));
  expect(renderers.toSorted()).toEqual(own.toSorted());
});

describe.each(renderers)("%s", (name) => {
  const cases = file.cases.filter(({ renderer }) => renderer === name);
  const tokenizer = tokenizerOf(name);

  it.each(cases.map((entry) => [entry.title, entry] as const))(
    "writes %s like the model's template",
    async (_, { messages: given, tools, system_prompt: system, text }) => {
      const renderer = await getRenderer(name, tokenizer);
      const prefix = tools ? renderer.createConversationPrefixWithTools(tools, system) : [];
      const messages = [...prefix, ...given.map(toMessage)];
      const isPrompt = messages.at(-1)?.role !== "assistant";
      const input = isPrompt
        ? renderer.buildGenerationPrompt(messages)
        : renderer.buildSupervisedExample(messages).input;
      // The last token of an example is a target alone.
      const written = tokenizer.decode(input.toInts());
      expect(written).toBe(isPrompt ? text : text.replace(/\n$/, ""));
    },
  );

  it("parses its own answers", async () => {
    const renderer = await getRenderer(name, tokenizer);
    const answers = cases.flatMap(({ messages }) =>
      messages.filter(({ role }) => role === "assistant").map(toMessage),
    );
    const question = { role: "user", content: "Q" };
    const prompt = renderer.buildGenerationPrompt([question]).toInts();
    let compared = 0;
    for (const answer of answers) {
      if (renderer.disablesThinking && typeof answer.content !== "string") continue;
      const whole = renderer.buildSupervisedExample([question, answer]).input.toInts();
      // An answer without reasoning cannot follow a prompt that begins it.
      if (!prompt.every((id, at) => whole[at] === id)) continue;
      const { message, termination } = renderer.parseResponse(whole.slice(prompt.length));
      expect(termination).toBe("stop_sequence");
      expect(textOf(message)).toBe(textOf(answer));
      const calls = answer.toolCalls?.map((call) => ({ id: null, function: call.function }));
      expect(message.toolCalls).toEqual(calls);
      expect(message.unparsedToolCalls).toBeUndefined();
      compared++;
    }
    // Some renderers have a single case, a conversation without an answer.
    expect(compared > 0 || answers.length === 0).toBe(true);
  });
});

describe("olmo3", () => {
  const tokenizer = tokenizerOf("olmo3");

  // No public case ends with an answer.
  it("closes the last answer like its family", async () => {
    const renderer = await getRenderer("olmo3", tokenizer);
    const { input } = renderer.buildSupervisedExample([
      { role: "system", content: "S" },
      { role: "user", content: "Q" },
      { role: "assistant", content: "A" },
    ]);
    expect(tokenizer.decode(input.toInts())).toBe(
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|endoftext|>",
    );
  });
});

describe("calls in Python's notation", () => {
  it.each([
    [
      `[f(a='it\\'s', b=[1, 2.50, None], c={"k": True})]`,
      [["f", `{"a": "it's", "b": [1, 2.50, null], "c": {"k": true}}`]],
    ],
    [
      `[f(), g.h(x=-1e3)]`,
      [
        ["f", "{}"],
        ["g.h", `{"x": -1e3}`],
      ],
    ],
  ])("reads %s", async (text, wanted) => {
    const renderer = await getRenderer("lfm2", tokenizerOf("lfm2"));
    const answer = `<|tool_call_start|>${text}<|tool_call_end|>So.<|im_end|>`;
    const { message } = renderer.parseResponse(tokenizerOf("lfm2").encode(answer));
    expect(message.content).toBe("So.");
    expect(
      message.toolCalls?.map(({ function: { name, arguments: args } }) => [name, args]),
    ).toEqual(wanted);
  });

  it.each(["[f(a=)]", "[f(a=1]", "[1]", "[f(a=what)]", "[]"])("keeps %s unparsed", async (text) => {
    const renderer = await getRenderer("lfm2", tokenizerOf("lfm2"));
    const answer = `<|tool_call_start|>${text}<|tool_call_end|><|im_end|>`;
    const { message } = renderer.parseResponse(tokenizerOf("lfm2").encode(answer));
    expect(message.toolCalls).toBeUndefined();
    expect(message.unparsedToolCalls).toHaveLength(1);
  });
});
