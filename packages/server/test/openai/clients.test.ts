import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI, OpenAI as LangChainCompletion } from "@langchain/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { LengthFinishReasonError } from "openai/error";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { OpenAiServer } from "../support/openai-server.js";
import { ScriptedEngine } from "../support/scripted-engine.js";

// The clients as they are: only the address of the server is ours.

let scripted: OpenAiServer;
let real: OpenAiServer;
const engine = new ScriptedEngine();
beforeAll(async () => {
  [real, scripted] = await Promise.all([
    OpenAiServer.open(),
    OpenAiServer.open({ engine, limits: { streamPingMs: 20 } }),
  ]);
});
afterAll(() => Promise.all([real.close(), scripted.close()]));

const messages = [{ role: "user" as const, content: "Hello" }];
const weather = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>';
const person = z.object({
  name: z.string().max(8),
  age: z.number().int().min(0).max(120),
  tags: z.array(z.enum(["a", "b"])).max(2),
  note: z.string().max(4).nullable(),
});
const quiet = { chat_template_kwargs: { enable_thinking: false } };

describe("comments while a request waits", () => {
  const clients = {
    openai: async () => {
      const stream = scripted.client().chat.completions.stream({ model: "m", messages });
      return (await stream.finalChatCompletion()).choices[0]!.message.content;
    },
    "the AI SDK": async () => {
      const provider = createOpenAICompatible({ name: "ours", baseURL: `${scripted.url}/v1` });
      return await streamText({ model: provider("m"), messages }).text;
    },
    LangChain: async () => {
      const model = new ChatOpenAI({
        model: "m",
        apiKey: "any",
        configuration: { baseURL: `${scripted.url}/v1` },
      });
      let text = "";
      for await (const chunk of await model.stream("Hello")) text += chunk.text;
      return text;
    },
  };
  it.each(Object.entries(clients))("do not disturb %s", async (_, ask) => {
    engine.says("late");
    const arrived = engine.gates.close("sample");
    const answer = ask();
    await arrived;
    // The comments are on their way when a second stream, begun later, has seen two of them.
    const response = await scripted.fetch("/v1/chat/completions", {
      model: "m",
      messages,
      stream: true,
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!/(: ping\n\n){2}/.test(text)) text += (await reader.read()).value;
    engine.gates.openAll();
    await reader.cancel();
    expect(await answer).toBe("late");
  });
});

describe("openai", () => {
  it("chats, streams and reads log-probabilities", async () => {
    const client = real.client();
    const answer = await client.chat.completions.create({
      model: "m",
      messages,
      max_completion_tokens: 20,
      temperature: 0,
      logprobs: true,
      top_logprobs: 2,
    });
    const stream = client.chat.completions.stream({
      model: "m",
      messages,
      max_completion_tokens: 20,
      temperature: 0,
      stream_options: { include_usage: true },
    });
    const final = await stream.finalChatCompletion();
    expect(final.choices[0]!.message.content).toBe(answer.choices[0]!.message.content);
    expect(final.usage?.completion_tokens).toBe(answer.usage?.completion_tokens);
    expect(answer.choices[0]!.logprobs?.content?.[0]?.top_logprobs).toHaveLength(2);
    expect(answer).toMatchObject({ _request_id: expect.stringMatching(/^req_/) });
  });

  it("parses what zod describes", async () => {
    const client = real.client();
    const parsed = await client.chat.completions.parse({
      model: "m",
      messages,
      max_tokens: 300,
      seed: 1,
      response_format: zodResponseFormat(person, "person"),
      ...quiet,
    });
    person.parse(parsed.choices[0]!.message.parsed);
  });

  it("says that an answer was cut off", async () => {
    const asked = real.client().chat.completions.parse({
      model: "m",
      messages,
      max_tokens: 5,
      response_format: zodResponseFormat(person, "person"),
      ...quiet,
    });
    await expect(asked).rejects.toBeInstanceOf(LengthFinishReasonError);
  });

  it("runs tools until there is an answer", async () => {
    engine.says(weather, "It rains.");
    const asked: unknown[] = [];
    const runner = scripted.client().chat.completions.runTools({
      model: "m",
      messages,
      tools: [
        zodFunction({
          name: "weather",
          parameters: z.object({ city: z.string() }),
          function: ({ city }) => {
            asked.push(city);
            return "rain";
          },
        }),
      ],
    });
    expect(await runner.finalContent()).toBe("It rains.");
    expect(asked).toEqual(["Oslo"]);
  });

  it("understands errors, and tries again where that helps", async () => {
    const wrong = real.client().chat.completions.create({ model: "m", messages, temperature: 9 });
    await expect(wrong).rejects.toMatchObject({
      constructor: OpenAI.BadRequestError,
      param: "temperature",
      message: expect.stringContaining("from 0 to 2"),
    });
  });
});

describe("AI SDK", () => {
  const compatible = (server: OpenAiServer) =>
    createOpenAICompatible({
      name: "ours",
      baseURL: `${server.url}/v1`,
      apiKey: "any",
      includeUsage: true,
      supportsStructuredOutputs: true,
    })("m");

  it("calls tools in a loop while it streams", async () => {
    engine.says(weather, "It rains.");
    const before = engine.requests.length;
    const result = streamText({
      model: compatible(scripted),
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
    const requests = engine.requests.slice(before);
    expect(requests).toHaveLength(2);
    expect(scripted.tokenizer.decode(requests[1]!.prompt)).toContain("rain in Oslo");
    expect((await result.totalUsage).inputTokens).toBeGreaterThan(0);
  });

  it("reads thoughts", async () => {
    engine.says("<think>hm</think>yes");
    const { text, reasoningText } = await generateText({
      model: compatible(scripted),
      prompt: "x",
    });
    expect([text, reasoningText]).toEqual(["yes", "hm"]);
  });

  it("gives objects of a schema", async () => {
    const { output } = await generateText({
      model: compatible(real),
      prompt: "x",
      seed: 2,
      maxOutputTokens: 300,
      output: Output.object({ schema: person }),
      providerOptions: { ours: quiet },
    });
    person.parse(output);
  });

  it("calls the chat of @ai-sdk/openai with log-probabilities", async () => {
    const provider = createOpenAI({ baseURL: `${real.url}/v1`, apiKey: "any" });
    const { text, providerMetadata } = await generateText({
      model: provider.chat("m"),
      prompt: "Hello",
      temperature: 0,
      maxOutputTokens: 10,
      providerOptions: { openai: { logprobs: 2 } },
    });
    expect(text).not.toBe("");
    expect(providerMetadata?.["openai"]?.["logprobs"]).toBeDefined();
    const completed = await generateText({
      model: provider.completion("m"),
      prompt: "Hello",
      maxOutputTokens: 5,
    });
    expect(typeof completed.text).toBe("string");
  });

  it("shows the message of an error, and can be stopped", async () => {
    const model = compatible(real);
    const asked = generateText({ model, prompt: "x", temperature: 7, maxRetries: 0 });
    await expect(asked).rejects.toThrow("from 0 to 2");
    const abort = new AbortController();
    const stopped = generateText({ model, prompt: "x", abortSignal: abort.signal });
    abort.abort();
    await expect(stopped).rejects.toThrow(/abort/i);
  });
});

describe("LangChain", () => {
  const chat = (server: OpenAiServer, more: object = {}) =>
    new ChatOpenAI({
      model: "m",
      apiKey: "any",
      configuration: { baseURL: `${server.url}/v1` },
      maxRetries: 0,
      ...more,
    });

  const getWeather = {
    type: "function" as const,
    function: {
      name: "weather",
      parameters: { type: "object", properties: { city: { type: "string" } } },
    },
  };

  it("calls tools, whole and streamed", async () => {
    const bound = chat(scripted).bindTools([getWeather]);
    engine.says(weather);
    const { tool_calls: calls } = await bound.invoke("Weather?");
    expect(calls).toMatchObject([{ name: "weather", args: { city: "Oslo" } }]);
    engine.says(weather);
    let whole: { tool_calls?: unknown } | undefined;
    for await (const chunk of await bound.stream("Weather?")) {
      whole = whole === undefined ? chunk : (whole as typeof chunk).concat(chunk);
    }
    expect(whole?.tool_calls).toMatchObject([{ name: "weather", args: { city: "Oslo" } }]);
  });

  it("keeps thoughts", async () => {
    engine.says("<think>hm</think>yes");
    const answer = await chat(scripted).invoke("x");
    expect(answer.content).toBe("yes");
    expect(answer.additional_kwargs["reasoning_content"]).toBe("hm");
  });

  it("gives objects of a schema", async () => {
    const structured = chat(real, { maxTokens: 300, modelKwargs: quiet }).withStructuredOutput(
      person,
    );
    person.parse(await structured.invoke("x"));
  });

  it("completes texts", async () => {
    const model = new LangChainCompletion({
      model: "m",
      apiKey: "any",
      configuration: { baseURL: `${real.url}/v1` },
      maxTokens: 5,
    });
    expect(typeof (await model.invoke("The cat"))).toBe("string");
  });
});
