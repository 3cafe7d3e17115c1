import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OpenAiServer, type Loose } from "../support/openai-server.js";

let server: OpenAiServer;
beforeAll(async () => {
  server = await OpenAiServer.open();
});
afterAll(() => server.close());

describe("completions", () => {
  it("continue a text by sixteen tokens", async () => {
    const { json } = await server.complete({ ignore_eos: true });
    expect(json).toMatchObject({
      object: "text_completion",
      id: expect.stringMatching(/^cmpl-/),
      choices: [{ index: 0, text: expect.any(String), logprobs: null, finish_reason: "length" }],
    });
    expect(json.usage.completion_tokens).toBe(16);
  });

  it("take tokens as they are, and several prompts", async () => {
    const prompt = [...server.tokenizer.encode("The cat")];
    const { json } = await server.complete({ prompt, return_token_ids: true });
    expect(json.choices[0].prompt_token_ids).toEqual(prompt);
    const text = await server.complete({ prompt: "The cat" });
    expect(json.choices[0].text).toBe(text.json.choices[0].text);
    const four = await server.complete({
      prompt: ["The cat", "A dog"],
      n: 2,
      return_token_ids: true,
    });
    const other = [...server.tokenizer.encode("A dog")];
    expect(four.json.choices.map((one: Loose) => [one.index, one.prompt_token_ids])).toEqual([
      [0, prompt],
      [1, prompt],
      [2, other],
      [3, other],
    ]);
    const lists = await server.complete({ prompt: [prompt, other] });
    expect(lists.json.choices).toHaveLength(2);
    expect(lists.json.choices[0].text).toBe(text.json.choices[0].text);
  });

  it("refuse a prompt that is none", async () => {
    for (const [prompt, param] of [
      ["", "prompt"],
      [[], "prompt"],
      [undefined, "prompt"],
      [[[]], "prompt[0]"],
      [["a", ""], "prompt[1]"],
      [[1, 2, 3, 99999], "prompt[3]"],
      [[1, -1], "prompt[1]"],
      [{}, "prompt"],
    ] as const) {
      const { status, json } = await server.complete({ prompt });
      expect([prompt, status, json.error?.param]).toEqual([prompt, 400, param]);
    }
  });

  it("echo the prompt", async () => {
    const plain = await server.complete();
    const { json } = await server.complete({ echo: true });
    expect(json.choices[0].text).toBe(`The cat${plain.json.choices[0].text}`);
  });

  it("score a text as evaluation harnesses do", async () => {
    const prompt = "The cat sat on the mat";
    const { json } = await server.complete({ prompt, echo: true, max_tokens: 0, logprobs: 1 });
    const [{ text, logprobs }] = json.choices;
    expect([text, json.usage.completion_tokens]).toEqual([prompt, 0]);
    expect(logprobs.token_logprobs[0]).toBeNull();
    expect(logprobs.token_logprobs.slice(1).every((value: number) => value < 0)).toBe(true);
    for (const [index, offset] of logprobs.text_offset.entries()) {
      expect(prompt.slice(offset).startsWith(logprobs.tokens[index])).toBe(true);
    }
    const chat = await server.complete({ prompt, prompt_logprobs: 0, max_tokens: 1 });
    const told = chat.json.choices[0].prompt_logprobs.slice(1).map((entry: Loose) => {
      return (Object.values(entry)[0] as { logprob: number }).logprob;
    });
    expect(logprobs.token_logprobs.slice(1)).toEqual(told);
    const { status, json: refused } = await server.complete({ max_tokens: 0 });
    expect([status, refused.error.param]).toEqual([400, "max_tokens"]);
  });

  it("report log-probabilities of alternatives, by text or by id", async () => {
    const none = await server.complete({ logprobs: 0, max_tokens: 4 });
    for (const map of none.json.choices[0].logprobs.top_logprobs) {
      expect(Object.keys(map)).toHaveLength(1);
    }
    const two = await server.complete({ logprobs: 2, max_tokens: 4, temperature: 1.5, seed: 3 });
    const { top_logprobs, tokens, token_logprobs } = two.json.choices[0].logprobs;
    for (const [index, map] of top_logprobs.entries()) {
      expect([2, 3]).toContain(Object.keys(map).length);
      expect(map[tokens[index]]).toBe(token_logprobs[index]);
    }
    const byId = await server.complete({
      logprobs: 1,
      return_tokens_as_token_ids: true,
      return_token_ids: true,
    });
    const [choice] = byId.json.choices;
    expect(choice.logprobs.tokens).toEqual(choice.token_ids.map((id: number) => `token_id:${id}`));
    expect((await server.complete({ logprobs: 21 })).status).toBe(400);
  });

  it("stream texts", async () => {
    for (const more of [
      {},
      { echo: true },
      { echo: true, logprobs: 1 },
      { n: 2, prompt: ["a", "b"] },
    ]) {
      const { json } = await server.complete({ ...more, return_token_ids: true });
      const { events, isDone } = await server.stream(
        { ...more, return_token_ids: true },
        "/v1/completions",
      );
      expect(isDone).toBe(true);
      expect(events.some(({ choices }) => "delta" in choices[0])).toBe(false);
      for (const { index, text, token_ids, prompt_token_ids } of json.choices) {
        const own = events.map(({ choices }) => choices[0]).filter((one) => one.index === index);
        expect(own.map((one) => one.text).join("")).toBe(text);
        expect(own.flatMap((one) => one.token_ids)).toEqual(token_ids);
        expect(own[0].prompt_token_ids).toEqual(prompt_token_ids);
      }
    }
  });

  it("refuse what is not done", async () => {
    for (const more of [{ suffix: "x" }, { best_of: 3 }]) {
      const { status, json } = await server.complete(more);
      expect([status, json.error.code]).toEqual([400, "unsupported_parameter"]);
    }
    expect((await server.complete({ best_of: 1 })).status).toBe(200);
  });

  it("continue tokens in turns without ever encoding text again", async () => {
    const first = await server.complete({
      prompt: "The cat",
      return_token_ids: true,
      max_tokens: 5,
    });
    const [one] = first.json.choices;
    const so = [...one.prompt_token_ids, ...one.token_ids];
    const second = await server.complete({ prompt: [...so, 300], return_token_ids: true });
    expect(second.json.choices[0].prompt_token_ids.slice(0, so.length)).toEqual(so);
  });
});
