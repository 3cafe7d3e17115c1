import { afterEach, beforeEach, expect, it } from "vitest";
import {
  formerSample,
  officialSample,
  rawRequest,
  type SampleFields,
} from "./support/official-client.js";
import { TestApp } from "./support/test-app.js";

let app: TestApp;
let sampler: string;
beforeEach(async () => {
  app = await TestApp.open();
  const sessionId = await app.session();
  const body = { sessionId, samplingSessionSeqId: 0, baseModel: "toy" };
  ({ samplingSessionId: sampler } = await app.call("createSamplingSession", body));
});
afterEach(() => app.dispose());

interface Receipt {
  readonly request_id: string;
  readonly sample_sequence_ids: readonly string[];
}

async function post(route: string, body: object): Promise<{ status: number; json: Receipt }> {
  const response = await app.handle(rawRequest("http://localhost", route, body));
  return { status: response.status, json: (await response.json()) as Receipt };
}

const numbered = (seqId: number, fields: SampleFields = {}): object =>
  officialSample({ sampling_session_id: sampler, seq_id: seqId, ...fields });

it("a receipt names every sequence of a sample, the same for the same request, also after a restart", async () => {
  const first = await post("asample", numbered(0, { num_samples: 3 }));
  const second = await post("asample", numbered(1, { num_samples: 2 }));
  const ids = [...first.json.sample_sequence_ids, ...second.json.sample_sequence_ids];
  expect([first.status, ids.length, new Set(ids).size]).toEqual([200, 5, 5]);
  expect(ids.every((id) => typeof id === "string" && id !== "")).toBe(true);
  expect(await post("asample", numbered(0, { num_samples: 3 }))).toEqual(first);
  const result = await app.result(first.json.request_id);
  expect(result["sequences"]).toHaveLength(3);
  await app.restart();
  expect(await post("asample", numbered(0, { num_samples: 3 }))).toEqual(first);
});

it("a sample without a session has ids too", async () => {
  const { json } = await post("asample", officialSample({ base_model: "toy", num_samples: 2 }));
  expect(new Set(json.sample_sequence_ids).size).toBe(2);
});

it("fields at their defaults change nothing: what 0.25 asked for is the same request from 0.39", async () => {
  const former = formerSample({ sampling_session_id: sampler, seq_id: 0 });
  const first = await post("asample", former);
  await app.result(first.json.request_id);
  expect(await post("asample", numbered(0))).toEqual(first);
  expect(app.engine.log).toHaveLength(1);
  const other = await post("asample", numbered(0, { topk_sample_logprobs: 2 }));
  expect(other.status).toBe(409);
});

it("record_stability_info is taken and has no effect", async () => {
  const { json } = await post("asample", numbered(0, { record_stability_info: true }));
  expect(await app.result(json.request_id)).toHaveProperty("sequences");
});

it("a sample in protobuf is answered 415", async () => {
  const body = new Uint8Array([10, 1, 97]);
  const headers = { "content-type": "application/x-protobuf" };
  const url = "http://localhost/api/v1/asample";
  const response = await app.handle(new Request(url, { method: "POST", headers, body }));
  expect([response.status, await response.text()]).toEqual([
    415,
    expect.stringContaining("send JSON"),
  ]);
});
