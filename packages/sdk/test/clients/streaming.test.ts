import type { ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import {
  APIConnectionError,
  APIResponseValidationError,
  CancelledError,
  loadTokenizer,
  RequestFailedError,
  type SampledToken,
} from "tinker-ts";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, json, type Reply } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const final = {
  type: "sample",
  sequences: [{ stop_reason: "stop", tokens: [5, 6], logprobs: [-1, -2] }],
};
const line = (value: unknown): string => `${JSON.stringify(value)}\n`;
const tokenLine = (token: number, index = 0): string => line({ index, token, logprob: -0.5 });

/** Sends lines as they are and ends. */
const lines =
  (...texts: readonly (string | Uint8Array)[]): Reply =>
  (response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    for (const text of texts) response.write(text);
    response.end();
  };

/** Sends lines and leaves the answer open; resolves to it. */
function held(...texts: readonly string[]) {
  let opened: (response: ServerResponse) => void = () => {};
  const response = new Promise<ServerResponse>((resolve) => (opened = resolve));
  const reply: Reply = (answer) => {
    answer.writeHead(200, { "content-type": "application/x-ndjson" });
    for (const text of texts) answer.write(text);
    opened(answer);
  };
  const closed = response.then(
    (answer) => new Promise<void>((resolve) => void answer.once("close", resolve)),
  );
  return { reply, closed, response };
}

const open = (service: FakeService) => service.client().createSamplingClient({ baseModel: "m" });
const ask = { prompt: [1, 2], samplingParams: { maxTokens: 8 }, tokenizer: null };

async function collect(stream: AsyncIterable<SampledToken>): Promise<SampledToken[]> {
  const tokens: SampledToken[] = [];
  for await (const token of stream) tokens.push(token);
  return tokens;
}

describe("a stream", () => {
  it("gives out tokens and then the whole response", async ({ service }) => {
    const sampling = await open(service);
    service.server.script("streamSample", lines(tokenLine(5), tokenLine(6), line(final)));
    const stream = sampling.stream(ask);
    expect(stream.isLive).toBeNull();
    expect(await collect(stream)).toEqual([
      { index: 0, token: 5, logprob: -0.5, text: null },
      { index: 0, token: 6, logprob: -0.5, text: null },
    ]);
    expect(stream.isLive).toBe(true);
    expect((await stream.response).sequences[0]).toMatchObject({ stopReason: "stop" });
    const [request] = service.server.requestsTo("streamSample");
    expect(request!.json).toMatchObject({
      sampling_session_id: sampling.samplingSessionId,
      sampling_params: { max_tokens: 8 },
    });
    expect(request!.headers).toMatchObject({ "x-api-key": "tml-test" });
    expect(service.server.requestsTo("sample")).toEqual([]);
  });

  it("delivers a token before the next one arrives", async ({ service }) => {
    const sampling = await open(service);
    const { reply, response } = held(tokenLine(5));
    service.server.script("streamSample", reply);
    const iterator = sampling.stream(ask)[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toMatchObject({ token: 5 });
    (await response).end(tokenLine(6) + line(final));
    expect((await iterator.next()).value).toMatchObject({ token: 6 });
    expect(await iterator.next()).toMatchObject({ done: true, value: { type: "sample" } });
  });

  it("completes its response without a reader of tokens", async ({ service }) => {
    const sampling = await open(service);
    service.server.script("streamSample", lines(tokenLine(5), line(final)));
    expect((await sampling.stream(ask).response).sequences).toHaveLength(1);
  });

  it("reads lines and characters that are split anywhere", async ({ service }) => {
    const sampling = await open(service);
    const bytes = Buffer.from(tokenLine(5) + line({ index: 0, token: 6, note: "€" }) + line(final));
    service.server.script("streamSample", lines(...Array.from(bytes, (byte) => Buffer.of(byte))));
    expect((await collect(sampling.stream(ask))).map(({ token }) => token)).toEqual([5, 6]);
  });

  it("has the text of each token, without broken characters", async ({ service }) => {
    const sampling = await open(service);
    const tokenizer = await loadTokenizer(
      fileURLToPath(new URL("../../../engine/test/fixtures/qwen3/model", import.meta.url)),
    );
    const ids = [...tokenizer.encode("a€ ü!")];
    expect(ids.length).toBeGreaterThan(5);
    service.server.script(
      "streamSample",
      lines(...ids.flatMap((id) => [tokenLine(id, 0), tokenLine(id, 1)]), line(final)),
    );
    const tokens = await collect(sampling.stream({ ...ask, numSamples: 2, tokenizer }));
    for (const index of [0, 1]) {
      const texts = tokens.filter((token) => token.index === index).map(({ text }) => text);
      expect(texts.join("")).toBe("a€ ü!");
      expect(texts).not.toContainEqual(expect.stringContaining("\uFFFD"));
    }
  });

  it("that is left early closes the connection", async ({ service }) => {
    const sampling = await open(service);
    const { reply, closed } = held(tokenLine(5), tokenLine(6));
    service.server.script("streamSample", reply);
    const stream = sampling.stream(ask);
    for await (const { token } of stream) {
      expect(token).toBe(5);
      break;
    }
    await closed;
    await expect(stream.response).rejects.toBeInstanceOf(CancelledError);
  });

  it("that is aborted closes the connection and rejects with the caller's reason", async ({
    service,
  }) => {
    const sampling = await open(service);
    const { reply, closed } = held(tokenLine(5));
    service.server.script("streamSample", reply);
    const controller = new AbortController();
    const reason = new Error("enough");
    const reading = async () => {
      for await (const _ of sampling.stream({ ...ask, signal: controller.signal })) {
        controller.abort(reason);
      }
    };
    await expect(reading()).rejects.toBe(reason);
    await closed;
  });

  it("retries 429 before the first byte", async ({ service }) => {
    const sampling = await open(service);
    service.server.script("streamSample", bare(429), lines(tokenLine(5), line(final)));
    expect(await collect(sampling.stream(ask))).toHaveLength(1);
    expect(service.clock.sleeps).toEqual([1000]);
  });

  it("is retried when the connection breaks before the first byte", async ({ service }) => {
    const sampling = await open(service);
    service.server.script(
      "streamSample",
      (response) => void response.destroy(),
      lines(tokenLine(5), line(final)),
    );
    expect(await collect(sampling.stream(ask))).toHaveLength(1);
    expect(service.server.requestsTo("streamSample")).toHaveLength(2);
  });

  it("that breaks later is not restarted", async ({ service }) => {
    const sampling = await open(service);
    const { reply, response } = held(tokenLine(5));
    service.server.script("streamSample", reply);
    const iterator = sampling.stream(ask)[Symbol.asyncIterator]();
    await iterator.next();
    (await response).destroy();
    await expect(iterator.next()).rejects.toBeInstanceOf(APIConnectionError);
    expect(service.server.requestsTo("streamSample")).toHaveLength(1);
  });

  it.for([
    ["ends without its response", [tokenLine(5)], APIConnectionError, /ended before/],
    [
      "fails on the way",
      [line({ error: "no room", category: "server" })],
      RequestFailedError,
      /no room/,
    ],
    ["is no JSON", ["<html>"], APIResponseValidationError, /<html>/],
    ["holds something else", [line({ hello: 1 })], APIResponseValidationError, /hello/],
    ["holds a list", [line([1])], APIResponseValidationError, /not a stream of tokens/],
  ] as const)("that %s fails", async ([, texts, Class, message], { service }) => {
    const sampling = await open(service);
    service.server.script("streamSample", lines(...texts));
    const error = await collect(sampling.stream(ask)).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(Class);
    expect(error).toHaveProperty("message", expect.stringMatching(message));
  });

  it("of a server that refuses the prompt fails with its message", async ({ service }) => {
    const sampling = await open(service);
    service.server.script("streamSample", json({ error: "too long" }, 400));
    await expect(collect(sampling.stream(ask))).rejects.toMatchObject({
      status: 400,
      body: { error: "too long" },
    });
  });

  it("checks its arguments at once", async ({ service }) => {
    const sampling = await open(service);
    expect(() => sampling.stream({ ...ask, prompt: [] })).toThrow(/^prompt: /);
  });
});

describe("a server that cannot stream", () => {
  it("delivers at the end, warns, and is not asked again", async ({ service }) => {
    const sampling = await open(service);
    for (let round = 0; round < 2; round++) {
      const stream = sampling.stream(ask);
      expect(await collect(stream)).toEqual([
        { index: 0, token: 7, logprob: -0.5, text: null },
        { index: 0, token: 8, logprob: -1, text: null },
      ]);
      expect(stream.isLive).toBe(false);
    }
    expect(service.server.requestsTo("streamSample")).toHaveLength(1);
    expect(service.log).toContainEqual(expect.stringMatching(/^info this server cannot stream/));
  });
});
