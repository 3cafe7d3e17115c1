import { CancelledError, type ClientEvent } from "tinker-ts";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, drop, hang, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

const endpoints = (service: FakeService) => service.server.seen.map(({ endpoint }) => endpoint);

describe("opening a session", () => {
  it("requests flags, settings and a session, in that order and once", async ({ service }) => {
    const client = service.client({ userMetadata: { team: "t" } });
    await Promise.all([
      client.createLoraTrainingClient({ baseModel: "m" }),
      client.createLoraTrainingClient({ baseModel: "m" }),
      client.createSamplingClient({ baseModel: "m" }),
    ]);
    expect(endpoints(service).slice(0, 3)).toEqual([
      "clientConfig",
      "clientDynamicConfig",
      "createSession",
    ]);
    expect(service.server.requestsTo("createSession")).toHaveLength(1);
    expect(service.server.requestsTo("createSession")[0]!.json).toMatchObject({
      user_metadata: { team: "t" },
    });
    expect(
      service.server.requestsTo("createModel").map(({ json: body }) => body?.["model_seq_id"]),
    ).toEqual([0, 1]);
    expect(service.server.requestsTo("createModel")[0]!.json).toEqual({
      session_id: "session-0",
      model_seq_id: 0,
      base_model: "m",
      lora_config: { rank: 32, train_unembed: true, train_mlp: true, train_attn: true },
      type: "create_model",
    });
  });

  it("is not done for REST calls and capabilities", async ({ service }) => {
    const client = service.client();
    await client.getServerCapabilities().catch(() => {});
    await client
      .createRestClient()
      .listSessions()
      .catch(() => {});
    expect(service.server.requestsTo("createSession")).toEqual([]);
    expect(service.server.requestsTo("clientConfig")).toHaveLength(1);
  });

  it("logs the server's messages at their level", async ({ service }) => {
    service.server.script(
      "createSession",
      json({ session_id: "s", info_message: "i", warning_message: "w", error_message: "e" }),
    );
    await service.client().createSamplingClient({ baseModel: "m" });
    expect(service.log).toEqual(["info i", "warn w", "error e"]);
  });

  it("that failed is retried by the next call", async ({ service }) => {
    const client = service.client({ maxRetries: 0 });
    service.server.script("createSession", json({ detail: "no" }, 403));
    await expect(client.createSamplingClient({ baseModel: "m" })).rejects.toMatchObject({
      status: 403,
    });
    await client.createSamplingClient({ baseModel: "m" });
  });

  it("skips dynamic settings only if the server has none", async ({ service }) => {
    service.server.script("clientDynamicConfig", bare(404));
    await service.client().createSamplingClient({ baseModel: "m" });
    service.server.script("clientDynamicConfig", json({ detail: "no" }, 401));
    await expect(service.client().createSamplingClient({ baseModel: "m" })).rejects.toMatchObject({
      status: 401,
    });
  });

  it("continues for the others when one caller aborts", async ({ service }) => {
    let answer = (): void => {};
    service.server.script("clientConfig", async (response) => {
      await new Promise<void>((resolve) => (answer = resolve));
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    const client = service.client();
    const controller = new AbortController();
    const { signal } = controller;
    const impatient = client.createSamplingClient({ baseModel: "m", signal });
    const patient = client.createSamplingClient({ baseModel: "m" });
    await service.server.until(() => service.server.seen.length === 1);
    controller.abort(new Error("no time"));
    await expect(impatient).rejects.toThrow("no time");
    answer();
    await patient;
  });

  it("ends when all callers have aborted, and reports the repeated failure", async ({
    service,
  }) => {
    service.clock.isManual = true;
    service.server.handle("clientConfig", () => json({ detail: "starting" }, 503));
    const client = service.client();
    const failures = Promise.all(
      [
        client.getServerCapabilities({ timeoutMs: 900 }),
        client.createRestClient().listTrainingRuns({ timeoutMs: 900 }),
      ].map((call) => call.catch((error: unknown) => String(error))),
    );
    await service.server.until(() => service.server.seen.length === 1);
    await settle(10);
    await service.clock.advance(900);
    for (const failure of await failures) {
      expect(failure).toMatch(
        /was not finished after 900 ms. The last failure, of clientConfig: .*starting/,
      );
    }
    expect(service.clock.pending).toBe(0);
    service.server.handle("clientConfig", () => json({}));
    service.server.handle("getServerCapabilities", () => json({ supported_models: [] }));
    await client.getServerCapabilities();
  });
});

describe("closing", () => {
  it.for(["clientConfig", "createSession"] as const)(
    "does not wait for a server that does not answer %s",
    async (endpoint, { service }) => {
      service.server.handle(endpoint, () => hang);
      const client = service.client();
      const making = expect(client.createSamplingClient({ baseModel: "m" })).rejects.toBeInstanceOf(
        CancelledError,
      );
      await service.server.until(() => service.server.requestsTo(endpoint).length === 1);
      await client.close();
      await making;
    },
  );

  it("is done at the end of a block that uses the client", async ({ service }) => {
    const client = service.client();
    await client.createSamplingClient({ baseModel: "m" });
    await client[Symbol.asyncDispose]();
    expect(service.clock.pending).toBe(0);
  });
});

describe("a session that the server has ended", () => {
  const sessionsMade = (service: FakeService) => service.server.requestsTo("createSession").length;
  const over = json({ error: "no sign of life for 5 min" }, 410);

  it("shows in its heartbeat; the next client gets a new one", async ({ service }) => {
    const events: ClientEvent[] = [];
    const client = service.client({ onEvent: (event) => events.push(event) });
    await client.createSamplingClient({ baseModel: "m" });
    service.server.script("sessionHeartbeat", over);
    await service.clock.advance(10_000);
    await service.server.until(() => service.server.requestsTo("sessionHeartbeat").length === 1);
    await settle(10);
    expect(service.log).toEqual([expect.stringMatching(/^warn session session-0 is over/)]);
    expect(events.at(-1)).toMatchObject({ type: "sessionOver", sessionId: "session-0" });
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    expect(sampling.samplingSessionId).toBe("session-1:sample:0");
    expect(sessionsMade(service)).toBe(2);
  });

  it("shows when it refuses a client, which is then created in a new one", async ({ service }) => {
    const client = service.client();
    await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("createModel", over);
    service.server.script("sessionHeartbeat", over);
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    expect(training.modelId).toBe("session-1:train:0");
  });

  it("is distinguished from a missing checkpoint", async ({ service }) => {
    const client = service.client();
    service.server.handle("createSamplingSession", () => json({ error: "no such weights" }, 404));
    const modelPath = "tinker://r/sampler_weights/x";
    await expect(client.createSamplingClient({ modelPath })).rejects.toMatchObject({ status: 404 });
    // A server that does not know heartbeats answers 404 to all of them.
    service.server.handle("sessionHeartbeat", () => bare(404));
    const other = service.client();
    await expect(other.createSamplingClient({ modelPath })).rejects.toMatchObject({ status: 404 });
    expect(sessionsMade(service)).toBe(2);
  });
});

describe("in the background", () => {
  it("a heartbeat is sent every ten seconds, and two minutes without one are logged", async ({
    service,
  }) => {
    await service.client().createSamplingClient({ baseModel: "m" });
    const beats = () => service.server.requestsTo("sessionHeartbeat").length;
    const pass = async (): Promise<void> => {
      const before = beats();
      await service.clock.advance(10_000);
      await service.server.until(() => beats() > before);
      await settle(10);
    };
    await service.clock.advance(9_999);
    expect(beats()).toBe(0);
    await service.clock.advance(1);
    await service.server.until(() => beats() === 1);
    await settle(10);
    expect(service.server.requestsTo("sessionHeartbeat")[0]!.json).toEqual({
      session_id: "session-0",
      type: "session_heartbeat",
    });
    service.server.handle("sessionHeartbeat", () => drop("before"));
    for (let beat = 0; beat < 12; beat++) await pass();
    expect(service.log).toEqual([]);
    await pass();
    expect(service.log).toEqual([
      expect.stringMatching(/no heartbeat of session session-0 .* 130 s/),
    ]);
    service.server.handle("sessionHeartbeat", () => json({}));
    await pass();
    service.server.handle("sessionHeartbeat", () => bare(500));
    await pass();
    expect(service.log).toHaveLength(1);
  });

  it("settings are refreshed at their interval, and kept when that fails", async ({ service }) => {
    service.server.script("clientDynamicConfig", json({ refresh_interval_sec: 20 }));
    service.server.handle("clientDynamicConfig", () => bare(500));
    await service.client().createSamplingClient({ baseModel: "m" });
    const fetches = () => service.server.requestsTo("clientDynamicConfig").length;
    for (let round = 1; round <= 3; round++) {
      await service.clock.advance(20_000);
      await service.server.until(() => fetches() === 1 + round);
      await settle(10);
    }
  });
});
