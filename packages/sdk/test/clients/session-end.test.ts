import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, hang, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

const reports = (service: FakeService) =>
  service.server.requestsTo("finishSession").map(({ path, json: body }) => ({ path, body }));

const opened = async (service: FakeService) => {
  service.server.handle("finishSession", () => bare(200));
  const client = service.client();
  await client.createSamplingClient({ baseModel: "m" });
  return client;
};

describe("the end of a session", () => {
  it("is reported with a status and a detail", async ({ service }) => {
    const client = await opened(service);
    await client.close({ status: "errored", detail: "the data ran out" });
    await client.close();
    expect(reports(service)).toEqual([
      {
        path: "/api/v1/sessions/session-0/finish",
        body: { reason: { type: "errored" }, detail: "the data ran out" },
      },
    ]);
  });

  it("is a success at the end of a block", async ({ service }) => {
    const client = await opened(service);
    await client[Symbol.asyncDispose]();
    expect(reports(service)[0]!.body).toEqual({ reason: { type: "success" } });
  });

  it("is not reported without a session", async ({ service }) => {
    const client = service.client();
    await client
      .createRestClient()
      .listSessions()
      .catch(() => {});
    await client.close();
    expect(reports(service)).toEqual([]);
  });

  it("is not reported for a session that the server has ended", async ({ service }) => {
    const client = await opened(service);
    service.server.script("sessionHeartbeat", json({ error: "no heartbeat" }, 410));
    await service.clock.advance(10_000);
    await service.server.until(() => service.server.requestsTo("sessionHeartbeat").length === 1);
    await settle(10);
    await client.close();
    expect(reports(service)).toEqual([]);
  });

  it("does no harm at a server that does not know it", async ({ service }) => {
    const client = await opened(service);
    service.server.handle("finishSession", () => json({ detail: "Not Found" }, 404));
    await client.close();
    expect(service.log.filter((line) => line.startsWith("warn"))).toEqual([]);
  });

  it("does not wait longer than five seconds for the server", async ({ service }) => {
    const client = await opened(service);
    service.server.handle("finishSession", () => hang);
    const closing = client.close();
    await service.server.until(() => service.server.requestsTo("finishSession").length === 1);
    await service.clock.advance(5_000);
    await closing;
    expect(service.log).toEqual([expect.stringMatching(/warn session session-0 could not be/)]);
  });

  it("refuses a status that does not exist", async ({ service }) => {
    const client = await opened(service);
    expect(() => client.close({ status: "done" as never })).toThrow(/status: must be success/);
  });
});

describe("a program that is run", () => {
  it("gives its result and ends as a success", async ({ service }) => {
    const client = await opened(service);
    expect(await client.run(async (same) => (same === client ? 7 : 0))).toBe(7);
    expect(reports(service)[0]!.body).toEqual({ reason: { type: "success" } });
  });

  it("ends as errored with the message, and throws what it threw", async ({ service }) => {
    const client = await opened(service);
    const failure = new TypeError("no rows");
    const run = client.run(() => Promise.reject(failure));
    await expect(run).rejects.toBe(failure);
    expect(reports(service)[0]!.body).toEqual({
      reason: { type: "errored" },
      detail: "TypeError: no rows",
    });
  });

  it("ends as interrupted when it was cancelled", async ({ service }) => {
    const client = await opened(service);
    const run = client.run(() => Promise.reject(new DOMException("stop", "AbortError")));
    await expect(run).rejects.toThrow("stop");
    expect(reports(service)[0]!.body).toMatchObject({ reason: { type: "interrupted" } });
  });
});

describe("a sample without a waiting caller", () => {
  const pending = json({ type: "try_again", queue_state: "active" });
  const cancelled = (service: FakeService) =>
    service.server.requestsTo("cancelFuture").map(({ json: body }) => body?.["request_id"]);
  const start = async (service: FakeService, isEnabled: boolean) => {
    service.server.handle("clientDynamicConfig", () =>
      json({ refresh_interval_sec: 300, sample_cancel_enabled: isEnabled }),
    );
    service.server.handle("retrieveFuture", () => pending);
    service.server.handle("cancelFuture", () => bare(200));
    const client = service.client();
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    const future = sampling.sample({ prompt: [1] });
    const ended = expect(future).rejects.toThrow();
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length > 0);
    return { client, future, ended };
  };

  it("is cancelled at a server that allows it", async ({ service }) => {
    const { future, ended } = await start(service, true);
    future.cancel();
    await ended;
    await service.server.until(() => cancelled(service).length === 1);
    expect(cancelled(service)).toEqual(["request-0"]);
  });

  it("is cancelled before the client closes", async ({ service }) => {
    const { client, ended } = await start(service, true);
    await client.close();
    await ended;
    expect(cancelled(service)).toEqual(["request-0"]);
  });

  it("is left alone at other servers", async ({ service }) => {
    const { client, future, ended } = await start(service, false);
    future.cancel();
    await ended;
    await client.close();
    expect(cancelled(service)).toEqual([]);
  });
});

describe("sequences of a sample", () => {
  it("have the names of the receipt", async ({ service }) => {
    service.server.script("sample", json({ request_id: "r", sample_sequence_ids: ["r-a"] }));
    service.server.script(
      "retrieveFuture",
      service.encode("SampleResponse", {
        sequences: [{ stopReason: "stop", tokens: [1], logprobs: [-1] }],
      }),
    );
    const sampling = await service.client().createSamplingClient({ baseModel: "m" });
    const { sequences } = await sampling.sample({ prompt: [1] });
    expect(sequences[0]!.sequenceId).toBe("r-a");
  });

  it("have no names at a server that gives none", async ({ service }) => {
    const sampling = await service.client().createSamplingClient({ baseModel: "m" });
    const { sequences } = await sampling.sample({ prompt: [1] });
    expect(sequences[0]!.sequenceId).toBeUndefined();
  });

  it("are refused when their number differs from that of their names", async ({ service }) => {
    service.server.script("sample", (response, request) =>
      json({ request_id: "request-0", sample_sequence_ids: ["a", "b"] })(response, request),
    );
    service.server.script(
      "retrieveFuture",
      service.encode("SampleResponse", {
        sequences: [{ stopReason: "stop", tokens: [1], logprobs: [-1] }],
      }),
    );
    const sampling = await service.client().createSamplingClient({ baseModel: "m" });
    await expect(sampling.sample({ prompt: [1] })).rejects.toThrow(/named 2 sequences/);
  });
});
