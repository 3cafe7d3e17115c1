import { Worker } from "node:worker_threads";
import { SamplingClient, type RetryConfig, type SamplingClientState } from "tinker-ts";
import { expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

// Code that is evaluated in a worker is CommonJS, hence the imports by call.
const workerCode = `
(async () => {
  const { parentPort, workerData } = await import("node:worker_threads");
  const { SamplingClient } = await import("tinker-ts");
  const sampling = await SamplingClient.receive(workerData.state, { env: {} });
  const { sequences } = await sampling.sample({ prompt: [1, 2] });
  parentPort.postMessage([...sequences[0].tokens]);
  await sampling.close();
})();
`;

const inWorker = (state: SamplingClientState) =>
  new Promise<unknown>((resolve, reject) => {
    const worker = new Worker(workerCode, { eval: true, workerData: { state } });
    let answer: unknown;
    worker.once("message", (message) => (answer = message));
    worker.once("error", reject);
    // It has closed its connections by then, which are looked for at the end of a test.
    worker.once("exit", () => resolve(answer));
  });

const seqIds = (service: FakeService) =>
  service.server.requestsTo("sample").map(({ json: body }) => Number(body?.["seq_id"]));

it("a sampling client continues in a worker, in the same session", async ({ service }) => {
  service.flags["pjwt_auth_enabled"] = true;
  const claims = Buffer.from(JSON.stringify({ exp: Date.now() / 1000 + 3600 })).toString(
    "base64url",
  );
  service.server.handle("authToken", () => json({ jwt: `eyJh.${claims}.x` }));
  const sampling = await service.client().createSamplingClient({ baseModel: "m" });
  const state = sampling.transfer();
  expect(structuredClone(state)).toEqual(state);
  const asked = service.server.seen.length;
  expect(await inWorker(state)).toEqual([7, 8]);
  const fromWorker = service.server.seen.slice(asked);
  expect(fromWorker.map(({ endpoint }) => endpoint)).toEqual(["sample", "retrieveFuture"]);
  expect(fromWorker[0]!.headers["x-api-key"]).toBe(`eyJh.${claims}.x`);
  expect(fromWorker[0]!.json).toMatchObject({ sampling_session_id: sampling.samplingSessionId });
});

it("a copy authenticates without the environment", async ({ service }) => {
  const env = {
    TINKER_CREDENTIAL_CMD: "echo tml-from-command",
    TINKER_TELEMETRY: "0",
    CLOUDFLARE_ACCESS_CLIENT_ID: "access",
  };
  const client = service.client({ apiKey: undefined, telemetry: undefined, env });
  const state = (await client.createSamplingClient({ baseModel: "m" })).transfer();
  const copy = await SamplingClient.receive(state, { clock: service.clock, env: {} });
  await copy.sample({ prompt: [1] });
  expect(service.server.requestsTo("sample")[0]!.headers).toMatchObject({
    "x-api-key": "tml-from-command",
    "cf-access-client-id": "access",
  });
  await service.clock.advance(10_000);
  await copy.close();
  expect(service.server.requestsTo("telemetry")).toEqual([]);
});

it("copies use numbers of their own, far below 2^53", async ({ service }) => {
  const sampling = await service.client().createSamplingClient({ baseModel: "m" });
  const state = sampling.transfer();
  const options = { clock: service.clock, env: {} };
  const copies = await Promise.all(
    Array.from({ length: 20 }, () => SamplingClient.receive(state, options)),
  );
  await Promise.all(
    [sampling, ...copies].flatMap((c) => [c.sample({ prompt: [1] }), c.sample({ prompt: [2] })]),
  );
  const numbers = seqIds(service);
  expect(new Set(numbers).size).toBe(42);
  for (const number of numbers) expect(number + 1e9).toBeLessThan(2 ** 53);
  const bases = numbers.filter((number) => number > 1).map((number) => Math.floor(number / 1e9));
  expect(new Set(bases).size).toBe(20);
  // They share one connection and one heartbeat, which end with the last of them.
  const beats = () => service.server.requestsTo("sessionHeartbeat").length;
  const before = beats();
  await service.clock.advance(10_000);
  await service.server.until(() => beats() === before + 2);
  for (const copy of copies) await copy.close();
  expect(service.server.requestsTo("createSession")).toHaveLength(1);
});

it("a client that does not use the network cannot be transferred", async ({ service }) => {
  const sampling = await service
    .client({ fetch: () => Response.json({ session_id: "s", sampling_session_id: "x" }) })
    .createSamplingClient({ baseModel: "m" });
  expect(() => sampling.transfer()).toThrow(/cannot be handed to another thread/);
});

it("a copy retries like the original; a judge cannot be copied", async ({ service }) => {
  const client = service.client();
  const make = (retryConfig: RetryConfig) =>
    client.createSamplingClient({ baseModel: "m", retryConfig });
  const once = await make({ enableRetries: false });
  const options = { clock: service.clock, env: {} };
  const copy = await SamplingClient.receive(structuredClone(once.transfer()), options);
  service.server.script("retrieveFuture", bare(410));
  await expect(copy.sample({ prompt: [1] })).rejects.toMatchObject({ code: "request_expired" });
  await copy.close();
  const judged = await make({ isRetryable: () => true });
  expect(() => judged.transfer()).toThrow(/isRetryable.*cannot be handed .* leave it out/);
});
