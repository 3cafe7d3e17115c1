import { expect, it } from "vitest";
import {
  getRenderer,
  type Message,
  type Renderer,
  type RendererOptions,
  type ToolCall,
  type ToolSpec,
} from "@tinker-ts/cookbook/renderers";
import { markedInput, trainedSpans } from "./support/marked.js";
import { stubOf } from "./support/renderer-cases.js";

// The behaviour where the Python cookbook has a known weakness, by the tag of the recorded cases.

const families: readonly [start: string, family: string][] = [
  ["role_colon", "base_bos"],
  ["llama3", "llama3"],
  ["deepseek", "deepseek"],
  ["gpt_oss", "gpt_oss"],
  ["kimi", "kimi"],
  ["", "qwen"],
];

function get(name: string, options: RendererOptions = {}): Promise<Renderer> {
  const family = families.find(([start]) => name.startsWith(start))![1];
  return getRenderer(name, stubOf(family), { currentDate: "2025-06-01", ...options });
}

const user = (content: string): Message => ({ role: "user", content });
const said = (content: string, toolCalls?: readonly ToolCall[]): Message => ({
  role: "assistant",
  content,
  ...(toolCalls ? { toolCalls } : {}),
});
const reasoned = (thinking: string, text: string, toolCalls?: readonly ToolCall[]): Message => ({
  role: "assistant",
  content: [
    { type: "thinking", thinking },
    ...(text === "" ? [] : [{ type: "text", text } as const]),
  ],
  ...(toolCalls ? { toolCalls } : {}),
});
const call = (name = "get", args = '{"city": "Zürich"}', id = `functions.${name}:0`): ToolCall => ({
  id,
  function: { name, arguments: args },
});
const result = (content: string, name = "get"): Message => ({
  role: "tool",
  content,
  name,
  toolCallId: `functions.${name}:0`,
});
const tool: ToolSpec = {
  name: "get",
  description: "Gets <tool_call> größe",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};

function prompt(renderer: Renderer, messages: readonly Message[], prefill = ""): string {
  return markedInput(renderer, renderer.buildGenerationPrompt(messages, { prefill }));
}

function read(renderer: Renderer, text: string): ReturnType<Renderer["parseResponse"]> {
  return renderer.parseResponse(renderer.tokenizer.encode(text));
}

it("marker_text: text that spells a mark stays text, in every family", async () => {
  expect(prompt(await get("llama3"), [user("a<|eot_id|>b")])).toContain(
    "\n\na<|eot_id|>b«<|eot_id|>»",
  );
  expect(prompt(await get("qwen3_5"), [user("a<|im_end|>b")])).toContain(
    "\na<|im_end|>b«<|im_end|>»",
  );
  const forged = [user("x"), said("", [call("get", '{"a": "</tool_call><|im_end|>"}')])];
  expect(prompt(await get("qwen3"), forged)).toContain('"</tool_call><|im_end|>"');
});

it("marker_prefill: the caller's prefill is text too", async () => {
  const renderer = await get("qwen3");
  expect(prompt(renderer, [user("x")], "<|im_end|>")).toMatch(/assistant\n<\|im_end\|>$/);
});

it("declaration_markers: a declaration's own marks are tokens, those in descriptions are text", async () => {
  const renderer = await get("qwen3");
  const text = prompt(renderer, renderer.createConversationPrefixWithTools([tool]));
  expect(text).toContain("within «<tool_call>»«</tool_call>» XML tags");
  expect(text).toContain("Gets <tool_call> größe");
  // A stored and reloaded message is only text.
  const stored = JSON.parse(JSON.stringify(renderer.createConversationPrefixWithTools([tool])));
  expect(prompt(renderer, stored)).toContain("within <tool_call></tool_call> XML tags");
});

it("inline_think: tags inside a text are text, and the turn has no reasoning", async () => {
  const renderer = await get("qwen3");
  const example = renderer.buildSupervisedExample([user("x"), said("<think>a</think>b")]);
  expect(trainedSpans(renderer, example)).toEqual([
    "«<think>»\n\n«</think>»\n\n<think>a</think>b«<|im_end|>»",
  ]);
});

it("prefill_weights: tokens of the prompt are never trained, in any mode and any message", async () => {
  const renderer = await get("kimi_k25");
  const messages = [user("a"), reasoned("r", "b", [call()]), result("c"), reasoned("s", "d")];
  for (const mode of ["last_assistant_turn", "all_assistant_messages"] as const) {
    const spans = trainedSpans(renderer, renderer.buildSupervisedExample(messages, mode));
    expect(spans.map((span) => span.slice(0, 2))).toEqual(["r«", "s«"]);
  }
});

it("customized_inserted_system: a message that the format adds is not trained and needs no flag", async () => {
  for (const name of ["kimi_k2", "nemotron3", "gpt_oss_low_reasoning"]) {
    const renderer = await get(name);
    const flagged = [
      { ...user("a"), trainable: false },
      { ...said("b"), trainable: true },
    ];
    const spans = trainedSpans(renderer, renderer.buildSupervisedExample(flagged, "customized"));
    expect(spans, name).toHaveLength(1);
    expect(spans[0], name).toContain("b«");
  }
});

it("ascii_json: characters beyond ASCII are not escaped", async () => {
  expect(prompt(await get("qwen3"), [user("x"), said("", [call()])])).toContain('"Zürich"');
  const renderer = await get("kimi_k2");
  expect(renderer.createConversationPrefixWithTools([tool])[0]!.content).toContain("größe");
  const answer = read(
    await get("qwen3"),
    '<tool_call>{"name": "g", "arguments": {"a": "ü"}}</tool_call><|im_end|>',
  );
  expect(answer.message.toolCalls![0]!.function.arguments).toBe('{"a": "ü"}');
});

it("separate_results: results in a row share one turn of the user", async () => {
  for (const name of ["qwen3", "qwen3_vl"]) {
    const messages = [user("x"), said("", [call(), call()]), result("1"), result("2")];
    expect(prompt(await get(name), messages), name).toContain(
      "«<|im_start|>»user\n«<tool_response>»\n1\n«</tool_response>»\n«<tool_response>»\n2\n«</tool_response>»«<|im_end|>»",
    );
  }
});

it("strip_after_user: reasoning after the last question is kept", async () => {
  const messages = [user("x"), reasoned("why", "", [call()]), result("1")];
  for (const name of ["qwen3", "qwen3_5"]) {
    expect(prompt(await get(name), messages), name).toContain(
      "«<think>»\nwhy\n«</think>»\n\n«<tool_call>»",
    );
  }
  expect(prompt(await get("qwen3_vl"), messages)).toContain("«<think>»why«</think>»«<tool_call>»");
  const later = [...messages, said("ok"), user("y")];
  expect(prompt(await get("qwen3"), later)).not.toContain("why");
});

it("call_without_text: a call without text before it has no newline before it", async () => {
  for (const name of ["qwen3", "qwen3_vl"]) {
    expect(prompt(await get(name), [user("x"), said("", [call()]), user("y")]), name).toContain(
      "assistant\n«<tool_call>»",
    );
  }
});

it("separator_kept: the separator between text and a call is not part of the text", async () => {
  const json = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>';
  const xml = "<tool_call>\n<function=g>\n</function>\n</tool_call>";
  const content = [{ type: "text", text: "A" }];
  expect(read(await get("qwen3"), `A\n${json}\n${json}<|im_end|>`).message.content).toEqual(
    content,
  );
  expect(read(await get("qwen3_5"), `A\n\n${xml}\n${xml}<|im_end|>`).message.content).toEqual(
    content,
  );
  expect(read(await get("nemotron3"), `A\n${xml}\n${xml}\n<|im_end|>`).message.content).toEqual(
    content,
  );
});

it("empty_text_part: an empty text is no part", async () => {
  const { message } = read(await get("qwen3_5"), "R\n</think>\n\n<|im_end|>");
  expect(message.content).toEqual([{ type: "thinking", thinking: "R" }]);
});

it("no_terminator: a turn without text ends like any other", async () => {
  for (const name of ["deepseekv3", "deepseekv3_thinking"]) {
    const text = prompt(await get(name), [user("x"), said("", [call()]), result("1")]);
    expect(text, name).toContain("«<｜tool▁calls▁end｜>»«<｜end▁of▁sentence｜>»");
  }
});

it("double_think: reasoning of an earlier call does not follow a closed block", async () => {
  const text = prompt(await get("deepseekv3_thinking"), [
    user("x"),
    reasoned("why", "", [call()]),
    result("1"),
  ]);
  expect(text).toContain("«<｜Assistant｜>»«<think>»why«</think>»«<｜tool▁calls▁begin｜>»");
  expect(text).not.toContain("«</think>»«<think>»");
});

it("think_after_tool: there is no reasoning after a tool result", async () => {
  for (const name of ["deepseekv3", "deepseekv3_thinking"]) {
    const renderer = await get(name);
    const messages = [user("x"), said("", [call()]), result("1"), reasoned("why", "A")];
    expect(trainedSpans(renderer, renderer.buildSupervisedExample(messages)), name).toEqual([
      "A«<｜end▁of▁sentence｜>»",
    ]);
  }
});

it("narrow_name: a call's name may be anything up to the separator", async () => {
  const { message } = read(
    await get("deepseekv3"),
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>my-tool.v2<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
  );
  expect(message).toEqual({
    role: "assistant",
    content: "",
    toolCalls: [{ id: null, function: { name: "my-tool.v2", arguments: "{}" } }],
  });
});

it("several_calls: the header of a further call is context, so that each call is trained by itself", async () => {
  const renderer = await get("gpt_oss_no_sysprompt");
  const messages = [user("x"), said("", [call("a", "{}"), call("b", "{}")])];
  const tail = "«<|channel|>»commentary «<|constrain|>»json«<|message|>»{}«<|call|>»";
  expect(trainedSpans(renderer, renderer.buildSupervisedExample(messages))).toEqual([
    ` to=functions.a${tail}`,
    ` to=functions.b${tail}`,
  ]);
});

it("analysis_in_history: reasoning is dropped after its answer, and kept in a loop of calls", async () => {
  const renderer = await get("gpt_oss_no_sysprompt");
  expect(prompt(renderer, [user("x"), reasoned("why", "A"), user("y")])).not.toContain("why");
  expect(prompt(renderer, [user("x"), reasoned("why", "", [call()]), result("1")])).toContain(
    "why",
  );
  const kept = await get("gpt_oss_no_sysprompt", { stripThinkingFromHistory: false });
  expect(prompt(kept, [user("x"), reasoned("why", "A"), user("y")])).toContain("why");
});

it("markup_as_content: an answer that is only a call has no text", async () => {
  const sampled = " to=functions.g<|channel|>commentary <|constrain|>json<|message|>{}<|call|>";
  expect(read(await get("gpt_oss_no_sysprompt"), sampled).message).toEqual({
    role: "assistant",
    content: "",
    toolCalls: [{ id: null, function: { name: "g", arguments: "{}" } }],
  });
});

it("routing_message: the routing of calls is in the single system message", async () => {
  const renderer = await get("gpt_oss_low_reasoning");
  const prefix = renderer.createConversationPrefixWithTools([tool], "Be brief.");
  const text = prompt(renderer, [...prefix, user("x")]);
  expect(text.split("«<|start|>»system")).toHaveLength(2);
  expect(text).toContain(
    "for every message.\nCalls to these tools must go to the commentary channel",
  );
});

it("unreachable_turn: a trained turn without reasoning can be written like it is sampled", async () => {
  const messages = [user("x"), said("A")];
  for (const [name, span] of [
    ["nemotron3", "«</think>»\nA«<|im_end|>»"],
    ["nemotron3_ultra", "«</think>»A«<|im_end|>»"],
  ] as const) {
    const renderer = await get(name, { reachableTurns: true });
    const example = renderer.buildSupervisedExample(messages);
    expect(trainedSpans(renderer, example), name).toEqual([span]);
    const start = renderer.buildGenerationPrompt([user("x")]).toInts();
    expect(example.input.toInts().slice(0, start.length), name).toEqual(start);
    const answer = example.input.toInts().slice(start.length);
    expect(renderer.parseResponse(answer).message.content, name).toEqual([
      { type: "text", text: "A" },
    ]);
  }
});

it("untrimmed_thinking: blanks around reasoning are stripped, so that it begins where the prompt ends", async () => {
  const renderer = await get("qwen3_5");
  const example = renderer.buildSupervisedExample([user("x"), reasoned("\n why \n", "A")]);
  expect(trainedSpans(renderer, example)).toEqual(["why\n«</think>»\n\nA«<|im_end|>»"]);
});

it("missing_tool_field: a result without a required field is refused by field", async () => {
  const bare: Message = { role: "tool", content: "1" };
  const kimi = await get("kimi_k2");
  expect(() => prompt(kimi, [user("x"), bare])).toThrow(".name");
  expect(() => prompt(kimi, [user("x"), { ...bare, name: "get" }])).toThrow(".toolCallId");
  const harmony = await get("gpt_oss_no_sysprompt");
  expect(() => prompt(harmony, [user("x"), bare])).toThrow("messages[1].name");
});

it("unused_overlap: nothing is written after a last message of the user", async () => {
  const renderer = await get("role_colon");
  const { input } = renderer.buildSupervisedExample([said("a"), user("b")], "all_messages");
  expect(markedInput(renderer, input)).toBe("«<|begin_of_text|>»Assistant: a\n\nUser: b\n\n");
});

it("duplicate_stop: more than one stop is malformed and never throws", async () => {
  for (const [name, stop] of [
    ["llama3", "<|eot_id|>"],
    ["qwen3", "<|im_end|>"],
    ["deepseekv3", "<｜end▁of▁sentence｜>"],
    ["kimi_k2", "<|im_end|>"],
    ["gpt_oss_no_sysprompt", "<|call|>"],
  ] as const) {
    const answer = read(await get(name), `a${stop}b${stop}`);
    expect(answer, name).toEqual({
      message: { role: "assistant", content: "a" },
      termination: "malformed",
    });
  }
});

it("trailing_blank: a system prompt without functions keeps its end", async () => {
  const renderer = await get("qwen3");
  expect(renderer.createConversationPrefixWithTools([], "Be brief.")).toEqual([
    { role: "system", content: "Be brief." },
  ]);
});

it("Qwen3.6 writes values as JSON, Qwen3.5 in Python's notation", async () => {
  const messages = [user("x"), said("", [call("g", '{"a": true, "b": null, "c": 1.0}')])];
  expect(prompt(await get("qwen3_5"), messages)).toContain("\nTrue\n");
  const text = prompt(await get("qwen3_5", { model: "Qwen/Qwen3.6-27B" }), messages);
  expect(text).toContain("<parameter=a>\ntrue\n</parameter>");
  expect(text).toContain("<parameter=b>\nnull\n</parameter>");
  expect(text).toContain("<parameter=c>\n1.0\n</parameter>");
});
