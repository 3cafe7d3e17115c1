import { describe, expect, it } from "vitest";
import { systemClock } from "../runtime/clock.js";
import { createRuntime } from "../runtime/runtime.js";
import { yieldToEventLoop } from "../runtime/yield-to-event-loop.js";
import { Api } from "../transport/api.js";
import { openFetchTransport } from "../transport/fetch-transport.js";
import { decodeJson } from "../wire/json-codec.js";
import { durationText } from "./telemetry.js";
import { redact } from "./redact.js";
import { openTelemetry } from "./telemetry.js";

describe("the queue", () => {
  it("is sent in batches of a hundred and bounded; overflow is dropped and reported", async () => {
    const warnings: string[] = [];
    const silent = (): void => {};
    const runtime = createRuntime({
      env: {},
      logger: { debug: silent, info: silent, error: silent, warn: (line) => warnings.push(line) },
    });
    const dropped: number[] = [];
    runtime.events.subscribe((event) => {
      if (event.type === "telemetryDropped") dropped.push(event.events);
    });
    const sizes: number[] = [];
    const transport = openFetchTransport(async (request) => {
      const { events } = decodeJson("TelemetrySendRequest", await request.text());
      sizes.push(events.length);
      return Response.json({ status: "accepted" });
    }, systemClock);
    const api = new Api(transport.send, {
      baseUrl: { origin: "http://telemetry.invalid", prefix: "" },
      headers: {},
      query: {},
      timeoutMs: 1000,
      maxRetries: 0,
      runtime,
    });
    const telemetry = openTelemetry({ api, runtime });
    for (let index = 0; index < 10_003; index++) telemetry.log("event", "DEBUG", { index });
    expect(dropped).toEqual([1, 1, 1]);
    expect(warnings[0]).toMatch(/queue is full/);
    // There is no room for it, but asking for it sends what is there.
    await telemetry.captureFatal(new Error("x"));
    while (sizes.length < 100) await yieldToEventLoop();
    expect(new Set(sizes)).toEqual(new Set([100]));
    telemetry.stop();
    telemetry.log("late", "DEBUG", {});
    await transport.close();
  });
});

describe("redaction", () => {
  it("hides secrets by name and by form, and bounds the rest", () => {
    const circle: Record<string, unknown> = {};
    circle["again"] = circle;
    const redacted = redact({
      headers: { "X-API-Key": "tml-1", Authorization: "Bearer x", accept: "json" },
      text: "key tml-abc_1 and eyJhbGci.eyJzdWI.sig end",
      list: [Number.NaN, undefined, 2n, () => 1],
      long: "x".repeat(20_000),
      circle,
    }) as Record<string, unknown>;
    expect(redacted["headers"]).toEqual({
      "X-API-Key": "[redacted]",
      Authorization: "[redacted]",
      accept: "json",
    });
    expect(redacted["text"]).toBe("key [redacted] and [redacted] end");
    expect(redacted["list"]).toEqual(["NaN", null, "2", "function"]);
    expect((redacted["long"] as string).length).toBeLessThan(11_000);
    expect(JSON.stringify(redacted["circle"])).toContain("nested too deeply");
  });
});

it.each([
  [5_000, "0:00:05"],
  [0, "0:00:00"],
  [90_061_500, "1 day, 1:01:01.500000"],
  [2 * 86_400_000, "2 days, 0:00:00"],
])("%i ms are written as %s", (durationMs, text) => {
  expect(durationText(durationMs)).toBe(text);
});
