import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { CancelledError, ServiceClient, type SamplingClient, type SampledToken } from "tinker-ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLocalHandler, startServer } from "../src/index.js";
import { realModels } from "./support/real-models.js";

const ways = ["over HTTP", "in process"] as const;

describe.each(ways)("a stream of the client %s", (way) => {
  let dataDir: string;
  let service: ServiceClient;
  let sampling: SamplingClient;
  let close: () => Promise<void>;

  beforeEach(async () => {
    dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-stream-"));
    const options = {
      dataDir,
      models: realModels,
      logLevel: "silent",
      // A stream that is not given back keeps every later one out.
      limits: { maxStreams: 1 },
    } as const;
    if (way === "over HTTP") {
      const server = await startServer({ port: 0, ...options });
      service = new ServiceClient({ baseUrl: server.url, telemetry: false });
      close = () => server.close();
    } else {
      const handler = await createLocalHandler(options);
      const baseUrl = "http://local.invalid";
      service = new ServiceClient({ baseUrl, fetch: handler.fetch, telemetry: false });
      close = () => handler.close();
    }
    sampling = await service.createSamplingClient({ baseModel: "qwen3" });
  });
  afterEach(async () => {
    await service.close();
    await close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const ask = (maxTokens: number) => ({
    prompt: [1, 2],
    samplingParams: { maxTokens, temperature: 1, seed: 1 },
  });

  it("gives out the tokens and the text of the whole sample", async () => {
    const stream = sampling.stream(ask(20));
    const tokens: SampledToken[] = [];
    for await (const token of stream) tokens.push(token);
    expect(stream.isLive).toBe(true);
    const { sequences } = await stream.response;
    expect(tokens.map(({ token }) => token)).toEqual([...sequences[0]!.tokens]);
    expect(tokens.map(({ logprob }) => logprob)).toEqual([...sequences[0]!.logprobs!]);
    const tokenizer = await sampling.getTokenizer();
    const text = tokenizer.decode(sequences[0]!.tokens, { skipSpecialTokens: true });
    expect(text.startsWith(tokens.map((token) => token.text).join(""))).toBe(true);
    expect((await sampling.sample(ask(20))).sequences[0]!.tokens).toEqual(sequences[0]!.tokens);
  });

  it("has the text of the whole in its response", async () => {
    const { sequences } = await sampling.stream(ask(20)).response;
    const tokenizer = await sampling.getTokenizer();
    const { tokens, text } = sequences[0]!;
    expect(text).toBe(tokenizer.decode(tokens, { skipSpecialTokens: true }));
  });

  it("that is left frees its place at the server", async () => {
    for (let round = 0; round < 2; round++) {
      const stream = sampling.stream(ask(400));
      for await (const _ of stream) break;
      await expect(stream.response).rejects.toBeInstanceOf(CancelledError);
    }
    expect((await sampling.stream(ask(3)).response).sequences[0]!.tokens).toHaveLength(3);
  });

  it("that is aborted frees its place at the server", async () => {
    for (let round = 0; round < 2; round++) {
      const controller = new AbortController();
      const stream = sampling.stream({ ...ask(400), signal: controller.signal });
      await stream[Symbol.asyncIterator]().next();
      controller.abort(new Error("enough"));
      await expect(stream.response).rejects.toThrow("enough");
    }
    expect((await sampling.stream(ask(3)).response).sequences[0]!.tokens).toHaveLength(3);
  });
});
