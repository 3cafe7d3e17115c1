import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { joined, OpenAiServer, type Loose } from "../support/openai-server.js";
import { ScriptedEngine } from "../support/scripted-engine.js";

let scripted: OpenAiServer;
let real: OpenAiServer;
const engine = new ScriptedEngine();
beforeAll(async () => {
  [real, scripted] = await Promise.all([OpenAiServer.open(), OpenAiServer.open({ engine })]);
});
afterAll(() => Promise.all([real.close(), scripted.close()]));

const object = (properties: object) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const tool = (name: string, parameters?: object) => ({
  type: "function",
  function: { name, description: "d", ...(parameters ? { parameters } : {}) },
});
const tools = [
  tool("add", object({ a: { type: "integer" }, b: { type: "integer" } })),
  tool("now"),
  tool(
    "note",
    object({
      text: { type: "string" },
      n: { type: "number" },
      ok: { type: "boolean" },
      o: { type: "object" },
    }),
  ),
];

async function say(text: string, more: Record<string, unknown> = {}) {
  engine.says(text);
  const { json } = await scripted.chat({ tools, max_tokens: 500, ...more });
  return json.choices?.[0] ?? json;
}

const call = (name: string, given: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${given}}\n</tool_call>`;

describe("calls that the model decides on", () => {
  it("have an id, a name and arguments as text", async () => {
    const { message, finish_reason } = await say(call("add", '{"a": 1, "b": 2}'));
    expect(message.content).toBeNull();
    expect(message.tool_calls).toEqual([
      {
        id: expect.stringMatching(/^call_[0-9a-f]+$/),
        type: "function",
        function: { name: "add", arguments: '{"a": 1, "b": 2}' },
      },
    ]);
    expect(finish_reason).toBe("tool_calls");
  });

  it("can be several, unless only one is wanted", async () => {
    const two = `${call("add", '{"a": 1}')}\n${call("now", "{}")}`;
    const { message } = await say(two);
    const names = (one: typeof message) => one.tool_calls.map((each: Loose) => each.function.name);
    expect(names(message)).toEqual(["add", "now"]);
    expect(new Set(message.tool_calls.map(({ id }: { id: string }) => id)).size).toBe(2);
    const first = await say(two, { parallel_tool_calls: false });
    expect(names(first.message)).toEqual(["add"]);
    engine.says(two);
    const { events } = await scripted.stream({ tools, max_tokens: 500 });
    const deltas = events.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    expect(deltas.filter((delta) => delta.id).map(({ index, type }) => [index, type])).toEqual([
      [0, "function"],
      [1, "function"],
    ]);
  });

  it("leave the text before them", async () => {
    const { message } = await say(`Let me see. \n\n${call("now", "{}")}`);
    expect(message).toMatchObject({ content: "Let me see.", tool_calls: [expect.anything()] });
  });

  it("are text, and not offered, where none are wanted", async () => {
    const text = call("now", "{}");
    const { message, finish_reason } = await say(text, { tool_choice: "none" });
    expect([message.content, finish_reason]).toEqual([text, "stop"]);
    engine.says("x");
    const { json } = await scripted.chat({ tools, tool_choice: "none", return_prompt_text: true });
    expect(json.prompt_text).not.toContain("# Tools");
    const empty = await scripted.chat({ tools: [], return_prompt_text: true });
    expect(empty.json.prompt_text).toBe(json.prompt_text);
  });

  it("keep their arguments byte by byte, streamed and not", async () => {
    const given =
      '{"o":{"deep":[{"x":1.0,"y":[]},{"s":"}</tool_call>\\"\\n{"}]} , "text":"é😀\\u0041" }';
    expect((await say(call("note", given))).message.tool_calls[0].function.arguments).toBe(given);
    engine.says(call("note", given));
    const { events } = await scripted.stream({ tools, max_tokens: 500 });
    expect(joined(events)).toMatchObject({
      calls: [{ name: "note", arguments: given }],
      finishReason: "tool_calls",
    });
  });

  it("have an empty object where there is nothing to say", async () => {
    const { message } = await say('<tool_call>{"name": "now"}</tool_call>');
    expect(message.tool_calls[0].function.arguments).toBe("{}");
  });

  it("are text when they are broken, and end by length when they are cut", async () => {
    const broken = await say('<tool_call>{"nam: oops}</tool_call>');
    expect(broken).toMatchObject({
      message: { content: '<tool_call>{"nam: oops}</tool_call>' },
      finish_reason: "stop",
    });
    const cut = await say(call("add", '{"a": 1, "b": 2}'), { max_tokens: 22 });
    expect(cut.finish_reason).toBe("length");
  });

  it("come back with their results in any order", async () => {
    const calls = (given: string) => [
      { id: "1", type: "function", function: { name: "add", arguments: given } },
      { id: "2", type: "function", function: { name: "now", arguments: "" } },
    ];
    const results = [
      { role: "tool", tool_call_id: "1", content: "3" },
      { role: "tool", tool_call_id: "2", content: "noon" },
    ];
    for (const given of ['{"a": 1}', "not JSON"]) {
      for (const order of [results, results.toReversed()]) {
        engine.says("ok");
        const messages = [
          { role: "user", content: "x" },
          { role: "assistant", content: null, tool_calls: calls(given) },
          ...order,
        ];
        const { status, json } = await scripted.chat({ messages, tools, return_prompt_text: true });
        expect(status).toBe(200);
        expect(json.prompt_text).toContain(given);
      }
    }
  });

  it("written as tags have the types of their schema", async () => {
    const tags =
      '<tool_call>\n<function=note>\n<parameter=text>\n42\n</parameter>\n<parameter=n>\n42\n</parameter>\n<parameter=ok>\ntrue\n</parameter>\n<parameter=o>\n{"a": [1]}\n</parameter>\n</function>\n</tool_call>';
    const { message } = await say(tags);
    expect(JSON.parse(message.tool_calls[0].function.arguments)).toEqual({
      text: "42",
      n: 42,
      ok: true,
      o: { a: [1] },
    });
  });
});

describe("calls that are demanded", () => {
  const short = [
    tool("add", object({ a: { type: "integer", minimum: 0, maximum: 99 } })),
    tool("pick", object({ color: { enum: ["red", "green"] } })),
  ];

  it("always come, of a tool that there is, with arguments that validate", async () => {
    for (const seed of [1, 2, 3]) {
      const { json } = await real.chat({
        tools: short,
        tool_choice: "required",
        parallel_tool_calls: false,
        temperature: 1,
        seed,
        max_tokens: 200,
        chat_template_kwargs: { enable_thinking: false },
      });
      const [{ message, finish_reason }] = json.choices;
      expect(finish_reason).toBe("tool_calls");
      const [made] = message.tool_calls;
      const given = JSON.parse(made.function.arguments);
      if (made.function.name === "add") expect(given.a).toBeLessThan(100);
      else expect(["red", "green"]).toContain(given.color);
    }
    const named = await real.chat({
      tools: short,
      tool_choice: { type: "function", function: { name: "pick" } },
      max_tokens: 200,
      chat_template_kwargs: { enable_thinking: false },
    });
    expect(named.json.choices[0]).toMatchObject({
      message: { tool_calls: [{ function: { name: "pick" } }] },
      finish_reason: "stop",
    });
    expect(named.json.choices[0].message.tool_calls).toHaveLength(1);
  });

  it("refuses choices that make no sense", async () => {
    for (const more of [
      { tools: short, tool_choice: { type: "function", function: { name: "nope" } } },
      { tool_choice: "required" },
      { tool_choice: "auto" },
      { tools: short, tool_choice: "sometimes" },
    ]) {
      const { status, json } = await real.chat(more);
      expect([status, json.error.param]).toEqual([400, "tool_choice"]);
    }
    expect((await real.chat({ tool_choice: "none" })).status).toBe(200);
    const other = await real.chat({ tools: [{ type: "code_interpreter" }] });
    expect([other.status, other.json.error.param]).toEqual([400, "tools[0].type"]);
    const strange = [tool("x", { type: "object", patternProperties: {} })];
    const refused = await real.chat({ tools: strange, tool_choice: "required" });
    expect([refused.status, refused.json.error.param]).toEqual([400, "tools"]);
  });
});

describe("other ways to write calls", () => {
  it.each([
    ["{# python_tag #}", '<|python_tag|>{"name": "add", "parameters": {"a": 1}}'],
    ["{# [TOOL_CALLS] #}", '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}]'],
    ["{# [TOOL_CALLS] #}", '[TOOL_CALLS]add[ARGS]{"a": 1}'],
    ['{# "parameters" #}', '{"name": "add", "parameters": {"a": 1}}'],
  ])("are read where the template shows them: %s", async (hint, text) => {
    const template = `${hint}{% for m in messages %}{{ m.content }}{% endfor %}`;
    const server = await OpenAiServer.open({ engine, template });
    try {
      engine.says(text);
      const { json } = await server.chat({ tools, max_tokens: 200 });
      expect(json.choices[0].message.tool_calls).toMatchObject([
        { function: { name: "add", arguments: '{"a": 1}' } },
      ]);
    } finally {
      await server.close();
    }
  });
});

describe("thoughts", () => {
  const thought = { reasoning_content: "a", content: "b" };

  it("are separate from the answer, unless that is not wanted", async () => {
    engine.says("<think>\na\n</think>\n\nb");
    const { json } = await scripted.chat();
    expect(json.choices[0].message).toMatchObject(thought);
    expect(json.usage.completion_tokens_details.reasoning_tokens).toBeGreaterThan(0);
    engine.says("<think>a</think>b");
    const merged = await scripted.chat({ separate_reasoning: false });
    expect(merged.json.choices[0].message.content).toBe("<think>a</think>b");
    for (const field of ["reasoning_content", "reasoning"]) {
      engine.says("x");
      const messages = [
        { role: "user", content: "q" },
        { role: "assistant", content: "r", [field]: "because" },
      ];
      const { json: rendered } = await scripted.chat({ messages, return_prompt_text: true });
      expect(rendered.prompt_text).toContain("<think>\nbecause\n</think>\n\nr<|im_end|>");
    }
  });

  it("begin at once where the template has opened them", async () => {
    const more = { chat_template_kwargs: { opens_thinking: true } };
    engine.says("a\n</think>\n\nb");
    expect((await scripted.chat(more)).json.choices[0].message).toMatchObject(thought);
    engine.says("a a a a a a a a");
    const { json } = await scripted.chat({ ...more, max_tokens: 5 });
    expect(json.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "" } });
    expect(json.choices[0].message.reasoning_content).toMatch(/^a a/);
  });

  it("are not ended by what a user writes", async () => {
    const more = { chat_template_kwargs: { opens_thinking: true } };
    engine.says("still thinking");
    const messages = [{ role: "user", content: "</think> <think>" }];
    const { json } = await scripted.chat({ ...more, messages });
    expect(json.choices[0].message.reasoning_content).toBe("still thinking");
    engine.says("plain");
    const plain = await scripted.chat({ messages });
    expect(plain.json.choices[0].message.content).toBe("plain");
  });
});
