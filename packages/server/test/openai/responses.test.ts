import { createOpenAI } from "@ai-sdk/openai";
import { Agent, OpenAIProvider, Runner, tool as agentTool } from "@openai/agents";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { zodTextFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { OpenAiServer } from "../support/openai-server.js";
import { ScriptedEngine } from "../support/scripted-engine.js";

let scripted: OpenAiServer;
let real: OpenAiServer;
const engine = new ScriptedEngine();
beforeAll(async () => {
  [real, scripted] = await Promise.all([OpenAiServer.open(), OpenAiServer.open({ engine })]);
});
afterAll(() => Promise.all([real.close(), scripted.close()]));

const weather = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>';
const quiet = { chat_template_kwargs: { enable_thinking: false } };

describe("responses", () => {
  it("say what a chat completion says", async () => {
    const client = real.client();
    const answer = await client.responses.create({
      model: "m",
      instructions: "Be brief",
      input: "Hello",
      temperature: 0,
      max_output_tokens: 20,
    });
    const chat = await client.chat.completions.create({
      model: "m",
      messages: [
        { role: "system", content: "Be brief" },
        { role: "user", content: "Hello" },
      ],
      temperature: 0,
      max_tokens: 20,
    });
    expect(answer.output_text).toBe(chat.choices[0]!.message.content);
    expect(answer).toMatchObject({
      object: "response",
      store: false,
      usage: { output_tokens: chat.usage!.completion_tokens },
    });
  });

  it("stream events that put together are the whole", async () => {
    engine.says(`<think>hm</think>Text 😀 first.\n${weather}\n${weather.replace("Oslo", "Rome")}`);
    const tools = [
      {
        type: "function" as const,
        name: "weather",
        strict: true,
        parameters: { type: "object", properties: { city: { type: "string" } } },
      },
    ];
    const stream = scripted.client().responses.stream({ model: "m", input: "x", tools });
    const types: string[] = [];
    const numbers: number[] = [];
    for await (const event of stream) {
      types.push(event.type);
      numbers.push(event.sequence_number);
    }
    const final = await stream.finalResponse();
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(types.slice(0, 2)).toEqual(["response.created", "response.in_progress"]);
    expect(types.at(-1)).toBe("response.completed");
    expect(final.output.map(({ type }) => type)).toEqual([
      "reasoning",
      "message",
      "function_call",
      "function_call",
    ]);
    expect(final.output_text).toBe("Text 😀 first.");
    expect(final.output[3]).toMatchObject({
      name: "weather",
      arguments: '{"city": "Rome"}',
      call_id: expect.stringMatching(/^call_/),
    });
  });

  it("take a conversation of items, and the forms of a schema", async () => {
    engine.says("ok");
    await scripted.client().responses.create({
      model: "m",
      input: [
        { role: "user", content: [{ type: "input_text", text: "Weather?" }] },
        {
          type: "reasoning",
          id: "rs",
          summary: [],
          content: [{ type: "reasoning_text", text: "hm" }],
        },
        { type: "function_call", call_id: "c", name: "weather", arguments: '{"city":"Oslo"}' },
        { type: "function_call_output", call_id: "c", output: "rain" },
      ] as never,
    });
    expect(scripted.tokenizer.decode(engine.requests.at(-1)!.prompt)).toContain(
      '<think>\nhm\n</think>\n\n\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nrain',
    );
    const shape = z.object({ n: z.number().int().min(0).max(9) });
    const parsed = await real.client().responses.parse({
      model: "m",
      input: "x",
      text: { format: zodTextFormat(shape, "shape") },
      ...quiet,
    });
    shape.parse(parsed.output_parsed);
  });

  it("report that they were cut, and refuse what needs a memory", async () => {
    engine.says("one two three four");
    const cut = await scripted.client().responses.create({
      model: "m",
      input: "x",
      max_output_tokens: 2,
    });
    expect(cut).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    });
    for (const [more, param] of [
      [{ previous_response_id: "resp_1" }, "previous_response_id"],
      [{ tools: [{ type: "web_search" }] }, "tools[0].type"],
      [{ input: [{ type: "item_reference", id: "msg_1" }] }, "input[0]"],
      [{ input: [] }, "input"],
    ] as const) {
      const { status, json } = await scripted.post("/v1/responses", {
        model: "m",
        input: "x",
        ...more,
      });
      expect([status, json.error.param]).toEqual([400, param]);
    }
  });
});

describe("clients that call responses by default", () => {
  it("AI SDK: streams, loops over tools, and gives objects", async () => {
    const provider = createOpenAI({ baseURL: `${scripted.url}/v1`, apiKey: "any" });
    engine.says(weather, "It rains.");
    const result = streamText({
      model: provider("m"),
      prompt: "Weather?",
      stopWhen: stepCountIs(3),
      tools: {
        weather: tool({
          inputSchema: z.object({ city: z.string() }),
          execute: async ({ city }) => `rain in ${city}`,
        }),
      },
    });
    expect(await result.text).toBe("It rains.");
    expect(scripted.tokenizer.decode(engine.requests.at(-1)!.prompt)).toContain("rain in Oslo");
    const shape = z.object({ n: z.number().int().min(0).max(9) });
    engine.says('{"n": 5}');
    const { output } = await generateText({
      model: provider("m"),
      prompt: "x",
      maxOutputTokens: 200,
      output: Output.object({ schema: shape }),
    });
    shape.parse(output);
  });

  it("Agents SDK: runs an agent with a tool", async () => {
    engine.says(weather, "It rains.");
    const agent = new Agent({
      name: "a",
      model: "m",
      tools: [
        agentTool({
          name: "weather",
          description: "d",
          parameters: z.object({ city: z.string() }),
          execute: async ({ city }) => `rain in ${city}`,
        }),
      ],
    });
    const modelProvider = new OpenAIProvider({ baseURL: `${scripted.url}/v1`, apiKey: "any" });
    const runner = new Runner({ modelProvider, tracingDisabled: true });
    const result = await runner.run(agent, "Weather?");
    expect(result.finalOutput).toBe("It rains.");
    expect(scripted.tokenizer.decode(engine.requests.at(-1)!.prompt)).toContain("rain in Oslo");
  });
});
