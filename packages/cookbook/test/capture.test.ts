import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createLocalHandler, type LocalHandler } from "@tinker-ts/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { captureRequests, trajectoryToData } from "../src/rl/index.js";

let folder: string;
let handler: LocalHandler;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-capture-"));
  handler = await createLocalHandler({ dataDir: folder, logLevel: "silent" });
});
afterAll(async () => {
  await handler.close();
  rmSync(folder, { recursive: true, force: true });
});

const local = (input: string | URL | Request, init?: RequestInit): Promise<Response> =>
  handler.fetch(new Request(input, init));

async function post(
  send: typeof local,
  route: string,
  body: object,
): Promise<{ status: number; text: string }> {
  const response = await send(`http://local.invalid/v1/${route}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "tinker-ts/sprout", temperature: 0.8, seed: 4, ...body }),
  });
  return { status: response.status, text: await response.text() };
}

const chat = { messages: [{ role: "user", content: "Hello" }], max_tokens: 12 };

it("makes an episode of sampled answers, streamed and not", async () => {
  const capture = captureRequests({ fetch: local });
  const whole = await post(capture.fetch, "chat/completions", chat);
  const plain = await post(local, "chat/completions", chat);
  const contentOf = ({ text }: { text: string }): unknown =>
    (JSON.parse(text) as { choices: { message: object }[] }).choices[0]!.message;
  expect(contentOf(whole)).toEqual(contentOf(plain));
  const streamed = await post(capture.fetch, "chat/completions", { ...chat, stream: true });
  expect(streamed.text).toContain("[DONE]");
  await post(capture.fetch, "completions", { prompt: "The cat", max_tokens: 5 });
  const { transitions } = await capture.take(2);
  expect(transitions.map(({ reward }) => reward)).toEqual([0, 0, 2]);
  const [first, second, third] = transitions;
  expect(second!.action.tokens).toEqual(first!.action.tokens);
  expect(second!.action.logprobs).toEqual(first!.action.logprobs);
  expect(third!.action.tokens.length).toBeLessThanOrEqual(5);
  await expect(capture.take(1)).rejects.toThrow("no request was captured");
});

it("joins continuing turns to one datum for training", async () => {
  const capture = captureRequests({ fetch: local });
  const prompt = [300, 301, 302];
  await post(capture.fetch, "completions", { prompt, max_tokens: 4, ignore_eos: true });
  const { transitions } = await capture.take(0);
  const soFar = [...prompt, ...transitions[0]!.action.tokens];
  await post(capture.fetch, "completions", { prompt: [...soFar, 310], max_tokens: 4 });
  const second = await capture.take(1);
  const [datum, ...others] = trajectoryToData(
    { transitions: [...transitions, ...second.transitions] },
    0.5,
  );
  expect(others).toEqual([]);
  const sampled = [...transitions, ...second.transitions].flatMap(({ action }) => [
    ...action.tokens,
  ]);
  const trained = [...datum!.targets].filter((_, index) => datum!.mask[index] === 1);
  expect(trained).toEqual(sampled);
});

it("leaves out a failed request that was repeated", async () => {
  const capture = captureRequests({ fetch: local });
  expect((await post(capture.fetch, "chat/completions", { messages: [] })).status).toBe(400);
  await post(capture.fetch, "chat/completions", chat);
  expect((await capture.take(1)).transitions).toHaveLength(1);
});

it("refuses an episode without requests, and one with a failed last request", async () => {
  const capture = captureRequests({ fetch: local });
  await expect(capture.take(1)).rejects.toThrow("no request was captured");
  await post(capture.fetch, "chat/completions", chat);
  await post(capture.fetch, "chat/completions", { messages: [] });
  await expect(capture.take(1)).rejects.toThrow(/incomplete: a request failed: .* status 400/);
});

it("refuses a stream that ends before its answer", async () => {
  const event = {
    choices: [{ prompt_token_ids: [1], token_ids: [2], logprobs: { content: [{ logprob: 0 }] } }],
  };
  const broken = captureRequests({
    fetch: async () =>
      new Response(`data: ${JSON.stringify(event)}\n\n`, {
        headers: { "content-type": "text/event-stream" },
      }),
  });
  await post(broken.fetch, "chat/completions", { ...chat, stream: true });
  await post(broken.fetch, "chat/completions", { ...chat, stream: true });
  await expect(broken.take(1)).rejects.toThrow("a stream ended before the answer did");
});

it("refuses the responses route, which it cannot capture", async () => {
  const capture = captureRequests({ fetch: local });
  await expect(post(capture.fetch, "responses", { input: "Hi" })).rejects.toThrow(
    "/v1/responses cannot be captured",
  );
});

it("refuses servers that send no tokens, and several answers per request", async () => {
  const capture = captureRequests({ fetch: local });
  const foreign = captureRequests({ fetch: async () => Response.json({ choices: [{}] }) });
  await post(foreign.fetch, "chat/completions", chat);
  await expect(foreign.take(1)).rejects.toThrow("tinker-ts server");
  await expect(post(capture.fetch, "chat/completions", { ...chat, n: 2 })).rejects.toThrow("n:");
});
