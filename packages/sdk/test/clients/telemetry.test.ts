import { metrics, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import type { ClientEvent } from "tinker-ts";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, hang, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

interface Batch {
  readonly session_id: string;
  readonly process_uuid: string;
  readonly platform: string;
  readonly sdk_version: string;
  readonly events: readonly Record<string, unknown>[];
}

const batches = (service: FakeService) =>
  service.server.requestsTo("telemetry").map(({ json: body }) => body as unknown as Batch);
const events = (service: FakeService) => batches(service).flatMap((batch) => batch.events);
const sent = (service: FakeService) => service.server.requestsTo("telemetry").length;

describe("telemetry", () => {
  it("starts with the session and is sent every ten seconds", async ({ service }) => {
    await service.client({ telemetry: true }).createSamplingClient({ baseModel: "m" });
    await settle();
    expect(sent(service)).toBe(0);
    await service.clock.advance(10_000);
    await service.server.until(() => sent(service) === 1);
    expect(batches(service)[0]).toMatchObject({
      session_id: "session-0",
      sdk_version: "0.25.0",
      process_uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      platform: expect.stringMatching(/^(Linux|Darwin|Windows)$/),
      events: [{ event: "SESSION_START", severity: "INFO", event_session_index: 0 }],
    });
  });

  it("reports a failure before the caller's promise rejects", async ({ service }) => {
    const client = service.client({ telemetry: true });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("retrieveFuture", json({ error: "it broke", category: "server" }));
    await expect(training.optimStep()).rejects.toThrow("it broke");
    expect(events(service)).toMatchObject([
      { event: "SESSION_START" },
      {
        event: "GENERIC_EVENT",
        event_name: "APIFuture.result_async.application_error",
        severity: "ERROR",
        event_data: { error: "it broke", error_category: "Server", is_user_error: false },
      },
      {
        event: "UNHANDLED_EXCEPTION",
        severity: "ERROR",
        error_type: "RequestFailedError",
        error_message: "it broke",
        traceback: expect.stringContaining("RequestFailedError"),
      },
      { event: "SESSION_END", duration: expect.stringMatching(/^0:00:\d\d/) },
    ]);
    const indices = events(service).map(({ event_session_index: index }) => index);
    expect(indices).toEqual([0, 1, 2, 3]);
  });

  it("reports user errors as such", async ({ service }) => {
    const client = service.client({ telemetry: true });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("optimStep", json({ detail: "bad rate" }, 422));
    await expect(training.optimStep()).rejects.toMatchObject({ status: 422 });
    expect(events(service)).toContainEqual(
      expect.objectContaining({
        event_name: "user_error",
        severity: "WARNING",
        event_data: expect.objectContaining({
          error_type: "UnprocessableEntityError",
          status_code: 422,
          body: { detail: "bad rate" },
        }),
      }),
    );
  });

  it("without a session has an id of its own and no start", async ({ service }) => {
    const client = service.client({ telemetry: true });
    service.server.handle("getServerCapabilities", () => json({ detail: "no" }, 403));
    await expect(client.getServerCapabilities()).rejects.toMatchObject({ status: 403 });
    expect(batches(service)[0]!.session_id).toMatch(/^sessionless-[0-9a-f-]{36}$/);
    expect(events(service).map(({ event }) => event)).not.toContain("SESSION_START");
    expect(events(service).map(({ event }) => event)).not.toContain("SESSION_END");
  });

  it("never shows a credential", async ({ service }) => {
    const apiKey = "tml-very-secret-key";
    const client = service.client({ telemetry: true, apiKey });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    const leak = { detail: `key ${apiKey} is bad`, api_key: apiKey, token: "eyJabc.def.ghi" };
    service.server.script("retrieveFuture", json(leak, 403, { "x-api-key": apiKey }));
    await expect(training.optimStep()).rejects.toThrow();
    const text = service.server
      .requestsTo("telemetry")
      .map(({ body }) => body.toString())
      .join();
    expect(text).toContain("[redacted]");
    expect(text).not.toContain("very-secret");
    expect(text).not.toContain("eyJabc");
  });

  it("delays an error by at most a second, and later ones not at all", async ({ service }) => {
    const client = service.client({ telemetry: true });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.handle("telemetry", () => hang);
    service.server.handle("optimStep", () => json({ detail: "no" }, 400));
    const before = service.clock.now();
    await expect(training.optimStep()).rejects.toMatchObject({ status: 400 });
    expect(service.clock.now() - before).toBe(1_000);
    await expect(training.optimStep()).rejects.toMatchObject({ status: 400 });
    expect(service.clock.now() - before).toBe(1_000);
  });

  it("that is refused is dropped, and the next batch is sent", async ({ service }) => {
    service.server.script("telemetry", json({ detail: "session_id: required" }, 422));
    const dropped: ClientEvent[] = [];
    const client = service.client({
      telemetry: true,
      onEvent: (event) => void (event.type === "telemetryDropped" && dropped.push(event)),
    });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    await service.clock.advance(10_000);
    await service.server.until(() => sent(service) === 1);
    await settle(10);
    expect(dropped).toEqual([{ type: "telemetryDropped", events: 1 }]);
    await service.clock.advance(120_000);
    expect(sent(service)).toBe(1);
    service.server.script("optimStep", json({ detail: "no" }, 400));
    await expect(training.optimStep()).rejects.toThrow();
    const [first, second] = batches(service).map(({ events: list }) => list);
    expect(second!.map(({ event_id: id }) => id)).not.toContain(first![0]!["event_id"]);
  });

  it("that does not get through is sent again, in the same batch", async ({ service }) => {
    service.server.script("telemetry", bare(400), json({ detail: "no" }, 503));
    await service
      .client({ telemetry: true, maxRetries: 0 })
      .createSamplingClient({ baseModel: "m" });
    await service.clock.advance(10_000);
    await service.server.until(() => sent(service) === 1);
    await settle(10);
    await service.clock.advance(1_000);
    await service.server.until(() => sent(service) === 2);
    await settle(10);
    await service.clock.advance(2_000);
    await service.server.until(() => sent(service) === 3);
    const ids = batches(service).map(({ events: list }) => list[0]!["event_id"]);
    expect(new Set(ids).size).toBe(1);
  });

  it("sends nothing more to a server without the endpoint", async ({ service }) => {
    service.server.handle("telemetry", () => bare(404));
    const client = service.client({ telemetry: true });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.handle("optimStep", () => json({ detail: "no" }, 400));
    await expect(training.optimStep()).rejects.toThrow();
    await expect(training.optimStep()).rejects.toThrow();
    await service.clock.advance(60_000);
    expect(sent(service)).toBe(1);
  });

  it.for(["0", "false", "off"])("is off with TINKER_TELEMETRY=%s", async (value, { service }) => {
    const client = service.client({ telemetry: undefined, env: { TINKER_TELEMETRY: value } });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("optimStep", json({ detail: "no" }, 400));
    await expect(training.optimStep()).rejects.toThrow();
    await service.clock.advance(60_000);
    expect(sent(service)).toBe(0);
  });

  it("does not report aborted calls", async ({ service }) => {
    const client = service.client({ telemetry: true });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    const future = training.optimStep();
    future.cancel();
    await expect(future).rejects.toThrow();
    expect(sent(service)).toBe(0);
  });
});

describe("events", () => {
  it("receive the start and end of every operation", async ({ service }) => {
    const received: ClientEvent[] = [];
    const client = service.client({ onEvent: (event) => received.push(event) });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("optimStep", json({ detail: "no" }, 400));
    await training.optimStep().catch(() => {});
    await training.optimStep();
    const summary = received.map((event) =>
      event.type === "operationEnd"
        ? `${event.operation} ${event.error === undefined ? "done" : "failed"}`
        : event.type,
    );
    expect(summary).toEqual([
      "sessionStart",
      "operationStart",
      "createModel done",
      "operationStart",
      "optimStep failed",
      "operationStart",
      "optimStep done",
    ]);
  });
});

describe("OpenTelemetry", () => {
  it("gets a span per operation, durations and retries", async ({ service }) => {
    const spans = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
    trace.setGlobalTracerProvider(provider);
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e9 });
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
    try {
      const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
      service.server.script("optimStep", bare(503), json({ detail: "no" }, 400));
      await training.optimStep().catch(() => {});
      await training.optimStep();
      const finished = spans.getFinishedSpans();
      expect(finished.map(({ name, status }) => [name, status.code])).toEqual([
        ["tinker createModel", 0],
        ["tinker optimStep", 2],
        ["tinker optimStep", 0],
      ]);
      expect(finished[2]!.attributes).toMatchObject({ "tinker.subject": training.modelId });
      await reader.forceFlush();
      const names = exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics)
        .flatMap((scope) => scope.metrics)
        .map(({ descriptor }) => descriptor.name);
      expect(names).toEqual(
        expect.arrayContaining(["tinker.client.operation.duration", "tinker.client.retries"]),
      );
    } finally {
      await reader.shutdown();
      trace.disable();
      metrics.disable();
    }
  });
});
