import { decodeProto } from "tinker-ts/wire";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { officialSample, rawRequest, type SampleFields } from "./support/official-client.js";
import { RealKit } from "./support/real-kit.js";
import { realModels } from "./support/real-models.js";
import { TestApp } from "./support/test-app.js";

const protobuf = { accept: "application/x-protobuf" };
const vocabSize = 310;
let real: RealKit;
let app: TestApp;
beforeAll(async () => {
  real = await RealKit.open();
});
afterAll(() => real.close());
beforeEach(async () => {
  app = await TestApp.open({ kit: real.kit, models: realModels });
});
afterEach(() => app.dispose());

interface RawTensor {
  readonly data: readonly number[];
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly sparse_crow_indices?: readonly number[];
  readonly sparse_col_indices?: readonly number[];
}

interface RawResponse {
  readonly sequences: readonly {
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
    readonly topk_logprobs?: readonly (readonly [number, number])[][];
  }[];
  readonly prompt_logprobs?: readonly (number | null)[];
  readonly topk_prompt_logprobs?: readonly (readonly [number, number][] | null)[];
  readonly target_prompt_logprobs?: RawTensor;
  readonly prompt_alt_tokens?: { readonly tokens: RawTensor; readonly logprobs: RawTensor };
}

function send(route: string, body: object, headers = {}): Promise<Response> {
  return app.handle(rawRequest("http://localhost", route, body, headers));
}

const ask = (fields: SampleFields): object => officialSample({ base_model: "qwen3", ...fields });

/** Samples and fetches the result in both of its forms, as a client with a long poll does. */
async function sample(fields: SampleFields) {
  const receipt = (await (await send("asample", ask(fields))).json()) as { request_id: string };
  const json = await app.result(receipt.request_id);
  const poll = { request_id: receipt.request_id, allow_metadata_only: false };
  const answer = await send("retrieve_future", poll, protobuf);
  expect(answer.headers.get("content-type")).toBe("application/x-protobuf");
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return { json: json as unknown as RawResponse, proto: decodeProto("SampleResponse", bytes) };
}

const prompt = [5, 6, 7, 8, 9];

it("scores dense targets: a cell for each prompt token but the first, 0.0 where nothing is asked", async () => {
  const data = prompt.slice(1).flatMap((token) => [token, -1]);
  const targets = { data, dtype: "int64", shape: [4, 2] } as const;
  const { json, proto } = await sample({
    prompt,
    prompt_logprobs: true,
    target_prompt_logprobs: targets,
  });
  const expected = json.prompt_logprobs!.slice(1).flatMap((logprob) => [logprob, 0]);
  expect(json.target_prompt_logprobs).toEqual({
    data: expected,
    dtype: "float32",
    shape: [4, 2],
  });
  expect(proto.targetPromptLogprobs).toMatchObject({
    data: Float32Array.from(expected as number[]),
    shape: [4, 2],
    sparseCrowIndices: null,
  });
});

it("scores sparse targets in their layout", async () => {
  const layout = { sparse_crow_indices: [0, 0, 1, 1, 3], sparse_col_indices: [2, 0, 1] };
  const targets = { data: [7, 9, 3], dtype: "int64", shape: [4, 3], ...layout } as const;
  const { json, proto } = await sample({
    prompt,
    prompt_logprobs: true,
    target_prompt_logprobs: targets,
  });
  const scores = json.target_prompt_logprobs!;
  expect(scores).toMatchObject({ dtype: "float32", shape: [4, 3], ...layout });
  expect(scores.data.slice(0, 2)).toEqual([json.prompt_logprobs![2], json.prompt_logprobs![4]]);
  expect(scores.data[2]).toBeLessThan(0);
  expect(proto.targetPromptLogprobs?.sparseCrowIndices).toEqual(Int32Array.of(0, 0, 1, 1, 3));
  expect(proto.targetPromptLogprobs?.data).toEqual(Float32Array.from(scores.data));
});

it("takes a body with more targets than are read on the spot", async () => {
  const long = Array.from({ length: 400 }, (_, index) => index % vocabSize);
  const data = long.slice(1).flatMap((token) => [token, ...Array<number>(59).fill(11)]);
  const targets = { data, dtype: "int64", shape: [399, 60] } as const;
  expect(JSON.stringify(targets).length).toBeGreaterThan(64 * 1024);
  const { json } = await sample({
    prompt: long,
    prompt_logprobs: true,
    target_prompt_logprobs: targets,
  });
  const first = json.target_prompt_logprobs!.data.filter((_, cell) => cell % 60 === 0);
  expect(first).toEqual(json.prompt_logprobs!.slice(1));
});

it("gives the most probable tokens at every sampled position, best first", async () => {
  const { json, proto } = await sample({
    prompt,
    sampling_params: { temperature: 0 },
    topk_sample_logprobs: 3,
  });
  const [sequence] = json.sequences;
  const rows = sequence!.topk_logprobs!;
  expect(rows.map(({ length }) => length)).toEqual([3, 3, 3, 3]);
  expect(rows.map((row) => row[0])).toEqual(
    sequence!.tokens.map((token, index) => [token, sequence!.logprobs[index]]),
  );
  for (const row of rows) expect(row).toEqual(row.toSorted(([, a], [, b]) => b - a));
  expect(proto.sequences[0]!.topkLogprobs).toEqual(rows);
  expect(proto.sequences[0]!.unknownFields).toBeUndefined();
});

it("gives them for samples that follow a schema, too", async () => {
  const extensions = { schema: { const: true } };
  const { json } = await sample({
    prompt,
    sampling_params: { max_tokens: 20, extensions },
    topk_sample_logprobs: 2,
  });
  const [sequence] = json.sequences;
  expect(sequence!.topk_logprobs).toHaveLength(sequence!.tokens.length);
});

it("gives each list of the most probable tokens as long as it was asked for", async () => {
  const { json } = await sample({
    prompt,
    sampling_params: { extensions: { top_logprobs: 4 } },
    topk_sample_logprobs: 2,
  });
  const [sequence] = json.sequences as unknown as { top_logprobs: []; topk_logprobs: [][] }[];
  expect(sequence!.topk_logprobs.map((row) => row.length)).toEqual([2, 2, 2, 2]);
  expect(sequence!.top_logprobs.map((row: []) => row.length)).toEqual([4, 4, 4, 4]);
});

it("draws alternatives to prompt tokens, the same for the same seed", async () => {
  const fields = { prompt, prompt_alt_tokens_k: 3 };
  const { json, proto } = await sample(fields);
  const { tokens, logprobs } = json.prompt_alt_tokens!;
  expect([tokens.dtype, tokens.shape, tokens.data.length]).toEqual(["int64", [4, 3], 12]);
  expect([logprobs.dtype, logprobs.shape, logprobs.data.length]).toEqual(["float32", [4, 3], 12]);
  expect(proto.promptAltTokens!.tokens.data).toEqual(Int32Array.from(tokens.data));
  expect(proto.promptAltTokens!.tokens.dtype).toBe("int64");
  const targets = { data: tokens.data, dtype: "int64", shape: [4, 3] } as const;
  const again = await sample({ ...fields, target_prompt_logprobs: targets });
  expect(again.json.prompt_alt_tokens).toEqual(json.prompt_alt_tokens);
  expect(again.json.target_prompt_logprobs!.data).toEqual(logprobs.data);
});

it("scores the last positions only where that is asked for", async () => {
  const asked = { prompt, prompt_logprobs: true, topk_prompt_logprobs: 1 };
  const whole = await sample(asked);
  const { json, proto } = await sample({ ...asked, prompt_logprobs_last_n: 2 });
  const tail = whole.json.prompt_logprobs!.slice(3);
  expect(json.prompt_logprobs).toEqual([null, null, null, ...tail]);
  expect(proto.promptLogprobs).toEqual([null, null, null, ...tail]);
  const rows = whole.json.topk_prompt_logprobs!.slice(3);
  expect(json.topk_prompt_logprobs).toEqual([null, null, null, ...rows]);
});

it("computes all of it for a stream, too", async () => {
  const fields = {
    prompt,
    prompt_logprobs: true,
    prompt_logprobs_last_n: 1,
    topk_sample_logprobs: 2,
    prompt_alt_tokens_k: 1,
    target_prompt_logprobs: { data: [1, 2, 3, 4], dtype: "int64", shape: [4, 1] } as const,
  };
  const { json } = await sample(fields);
  const lines = (await (await send("stream_sample", ask(fields))).text()).trimEnd().split("\n");
  const last = JSON.parse(lines.at(-1)!) as RawResponse;
  expect(last).toEqual(json);
  expect(JSON.parse(lines[0]!)).toHaveProperty(
    "top_logprobs",
    json.sequences[0]!.topk_logprobs![0],
  );
});

describe.each(["asample", "stream_sample"])("%s refuses before any work", (route) => {
  const int64 = (shape: readonly number[], data: readonly number[]) => ({
    target_prompt_logprobs: { data, shape, dtype: "int64" as const },
  });

  it.each<[SampleFields, string]>([
    [{ topk_sample_logprobs: 21 }, "topk_sample_logprobs: must be from 0 to 20, got 21"],
    [{ topk_sample_logprobs: -1 }, "topk_sample_logprobs: must be from 0 to 20"],
    [{ prompt_alt_tokens_k: -1 }, "prompt_alt_tokens_k: must be from 0 to 1024"],
    [{ prompt_alt_tokens_k: 1025 }, "prompt_alt_tokens_k: must be from 0 to 1024"],
    [{ prompt_logprobs_last_n: 1 }, "prompt_logprobs_last_n: needs prompt_logprobs"],
    [
      { prompt: Array<number>(1025).fill(1), prompt_alt_tokens_k: 1024 },
      "prompt_alt_tokens_k: 1024 for a prompt of 1025 tokens is too much; their product may be up to 1048576",
    ],
    [
      { prompt: Array<number>(20_000).fill(1), ...int64([19_999, 1], [...Array(19_999).keys()]) },
      "target_prompt_logprobs: 19999 different ids for a prompt of 20000 tokens are too much",
    ],
    [
      { prompt_logprobs: true, prompt_logprobs_last_n: 5 },
      "prompt_logprobs_last_n: must be from 1 to 4",
    ],
    [
      { prompt_logprobs: true, prompt_logprobs_last_n: 0 },
      "prompt_logprobs_last_n: must be from 1 to 4",
    ],
    [
      { prompt: [1], prompt_logprobs: true, prompt_logprobs_last_n: 1 },
      "prompt_logprobs_last_n: needs a prompt of at least 2 tokens",
    ],
    [int64([5, 1], [1, 2, 3, 4, 5]), "target_prompt_logprobs: must have shape [4, K]"],
    [int64([4], [1, 2, 3, 4]), "target_prompt_logprobs: must have shape [4, K]"],
    [int64([4, 1], [-1, -1, -1, -1]), "target_prompt_logprobs: names no token id"],
    [int64([4, 0], []), "target_prompt_logprobs: names no token id"],
    [int64([4, 1], [1, 2, vocabSize, -1]), "target_prompt_logprobs.data[2]: token 310 is not in"],
    [int64([4, 1], [1, -2, 3, -1]), "target_prompt_logprobs.data[1]: token -2 is not in"],
    [
      { target_prompt_logprobs: { data: [1, 2, 3, 4], shape: [4, 1], dtype: "float32" } },
      "target_prompt_logprobs: must be int64, got float32",
    ],
  ])("%j", async (fields, text) => {
    const response = await send(route, ask({ prompt, ...fields }));
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(text)]);
  });
});
