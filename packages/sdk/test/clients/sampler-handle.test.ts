import { ArgumentError, SamplingClient } from "tinker-ts";
import { expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const decoded = (handle: string): unknown =>
  JSON.parse(Buffer.from(handle, "base64url").toString("utf8"));

const handleOf = async (service: FakeService) => {
  const sampling = await service.client().createSamplingClient({ baseModel: "m" });
  return sampling.getSamplerHandle();
};

const open = (service: FakeService, handle: string) =>
  SamplingClient.fromSamplerHandle(handle, {
    apiKey: "tml-other",
    telemetry: false,
    clock: service.clock,
    env: {},
  });

it("a handle has the names of the official client and no credential", async ({ service }) => {
  const handle = await handleOf(service);
  expect(handle).toMatch(/^[\w=-]+$/);
  expect(decoded(handle)).toEqual({
    session_id: "session-0",
    sampling_session_id: "session-0:sample:0",
    holder: { base_url: service.server.url },
    record_stability_info: false,
  });
});

it("another process samples by it with its own key, numbered by the server", async ({
  service,
}) => {
  service.flags["sample_join_sampling_session"] = true;
  service.server.handle("joinSamplingSession", () =>
    json({ type: "join_sampling_session", client_counter: 3 }),
  );
  await using joined = await open(service, await handleOf(service));
  await joined.sample({ prompt: [1] });
  await joined.sample({ prompt: [2] });
  const samples = service.server.requestsTo("sample");
  expect(samples.map(({ json: body }) => body?.["seq_id"])).toEqual([3_000_000_000, 3_000_000_001]);
  expect(samples[0]!.json).toMatchObject({ sampling_session_id: "session-0:sample:0" });
  expect(samples[0]!.headers["x-api-key"]).toBe("tml-other");
  expect(service.server.requestsTo("createSession")).toHaveLength(1);
});

it("has a range of numbers of its own where the server gives none", async ({ service }) => {
  await using joined = await open(service, await handleOf(service));
  await joined.sample({ prompt: [1] });
  const [sample] = service.server.requestsTo("sample");
  expect(Number(sample!.json?.["seq_id"])).toBeGreaterThanOrEqual(1e9);
  expect(service.server.requestsTo("joinSamplingSession")).toEqual([]);
});

it("a handle that names no server is one of this process's own server", async ({ service }) => {
  const state = { session_id: "s", sampling_session_id: "s:sample:0", holder: { api_key: null } };
  const handle = Buffer.from(JSON.stringify(state)).toString("base64url");
  await using joined = await SamplingClient.fromSamplerHandle(handle, {
    telemetry: false,
    clock: service.clock,
    env: { TINKER_BASE_URL: service.server.url, TINKER_API_KEY: "tml-x" },
  });
  expect(joined.samplingSessionId).toBe("s:sample:0");
});

it.for(["", "no handle", Buffer.from("[]").toString("base64url")])(
  "%j is refused",
  async (handle) => {
    await expect(SamplingClient.fromSamplerHandle(handle)).rejects.toBeInstanceOf(ArgumentError);
  },
);
