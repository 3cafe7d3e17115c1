import {
  ArgumentError,
  CancelledError,
  RequestFailedError,
  SideThreadDiedError,
  SideThreadMessageError,
  type SamplingClient,
} from "tinker-ts";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { hang, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const open = (service: FakeService): Promise<SamplingClient> =>
  service.client({ sideThread: true }).createSamplingClient({ baseModel: "m" });

const samples = (service: FakeService) => service.server.requestsTo("sample");

describe("sampling in a side thread", () => {
  it("gives the same results, under numbers of its own", async ({ service }) => {
    const sampling = await open(service);
    const { sequences } = await sampling.sample({
      prompt: Int32Array.of(1, 2),
      samplingParams: { maxTokens: 2 },
    });
    expect(sequences).toMatchObject([
      { stopReason: "stop", tokens: Int32Array.of(7, 8), logprobs: Float64Array.of(-0.5, -1) },
    ]);
    expect(await sampling.computeLogprobs([1, 2])).toEqual([null, -2]);
    for (const { json: body } of samples(service)) {
      expect(body!["seq_id"]).toBeGreaterThanOrEqual(1e9);
    }
    expect(samples(service)[0]!.json).toMatchObject({
      sampling_session_id: sampling.samplingSessionId,
      sampling_params: { max_tokens: 2 },
    });
    await sampling.close();
  });

  it("is also enabled by the environment, and by training clients", async ({ service }) => {
    const client = service.client({ env: { TINKER_SUBPROCESS_SAMPLING: "1" } });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    const sampling = await training.saveWeightsAndGetSamplingClient();
    await sampling.sample({ prompt: [1] });
    expect(samples(service)[0]!.json!["seq_id"]).toBeGreaterThanOrEqual(1e9);
    await sampling.close();
  });

  it("does not apply to a custom fetch, unless it is explicit", async ({ service }) => {
    const fetch = () => Response.json({ session_id: "s", sampling_session_id: "x" });
    const env = { TINKER_SUBPROCESS_SAMPLING: "1" };
    await service.client({ fetch, env }).createSamplingClient({ baseModel: "m" });
    await expect(
      service.client({ fetch, sideThread: true }).createSamplingClient({ baseModel: "m" }),
    ).rejects.toThrow(/cannot be handed to another thread/);
  });

  it("refuses bad arguments in this thread, and passes errors on unchanged", async ({
    service,
  }) => {
    const sampling = await open(service);
    expect(() => sampling.sample({ prompt: [1], numSamples: 0 })).toThrow(ArgumentError);
    service.server.script("retrieveFuture", json({ error: "too long", category: "user" }));
    const failed = await sampling.sample({ prompt: [1] }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(RequestFailedError);
    expect(failed).toMatchObject({ message: "too long", category: "user", isUserError: true });
    service.server.script("sample", json({ detail: "no" }, 403));
    await expect(sampling.sample({ prompt: [1] })).rejects.toMatchObject({
      name: "PermissionDeniedError",
      status: 403,
      body: { detail: "no" },
      attempts: [{ status: 403 }],
    });
    service.server.script("retrieveFuture", json({ detail: "gone" }, 404));
    await expect(sampling.sample({ prompt: [1] })).rejects.toMatchObject({
      name: "ResultError",
      cause: { name: "NotFoundError", status: 404 },
    });
    await sampling.close();
  });

  it("can be cancelled, and then polls no more", async ({ service }) => {
    const sampling = await open(service);
    service.server.script("retrieveFuture", hang);
    const future = sampling.sample({ prompt: [1] });
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 1);
    future.cancel();
    await expect(future).rejects.toBeInstanceOf(CancelledError);
    await sampling.sample({ prompt: [1] });
    await sampling.close();
    await expect(sampling.sample({ prompt: [1] })).rejects.toBeInstanceOf(SideThreadMessageError);
  });

  it("takes many calls at once", async ({ service }) => {
    const sampling = await open(service);
    await Promise.all(Array.from({ length: 200 }, () => sampling.sample({ prompt: [1] })));
    expect(new Set(samples(service).map(({ json: body }) => body!["seq_id"])).size).toBe(200);
    await sampling.close();
  });

  it("that dies fails running calls; a new client works", async ({ service }) => {
    const sampling = await open(service);
    service.server.handle("retrieveFuture", () => hang);
    const future = sampling.sample({ prompt: [1] });
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 1);
    // A message that the thread does not expect makes it fail, as a defect would.
    const { sharedSideThread } = (await import(
      new URL("../../dist/clients/side-thread/side-thread.js", import.meta.url).href
    )) as { sharedSideThread: (clock: unknown) => { register: (state: unknown) => number } };
    sharedSideThread(service.clock).register(null);
    await expect(future).rejects.toBeInstanceOf(SideThreadDiedError);
    await expect(sampling.sample({ prompt: [1] })).rejects.toBeInstanceOf(SideThreadDiedError);
    service.server.handle("retrieveFuture", (request) => service.result(request));
    const again = await open(service);
    await again.sample({ prompt: [1] });
    await again.close();
  });
});
