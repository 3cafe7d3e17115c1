import type { Span } from "@opentelemetry/api";
import type { ClientEvent, EventHub } from "../runtime/events.js";
import { packageVersion } from "../runtime/version.js";

const scope = "tinker-ts";

/** A client that opens its connection a second time must not be counted twice. */
const connected = new WeakSet<EventHub>();

/**
 * Turns events into OpenTelemetry spans and metrics when `@opentelemetry/api` is installed: a span per
 * operation, a histogram of their durations and a counter of retries. Without it nothing happens.
 */
export async function connectOpenTelemetry(events: EventHub): Promise<void> {
  const api = await import("@opentelemetry/api").catch(() => undefined);
  if (!api || connected.has(events)) return;
  connected.add(events);
  const { trace, metrics, SpanKind, SpanStatusCode } = api;
  const tracer = trace.getTracer(scope, packageVersion);
  const meter = metrics.getMeter(scope, packageVersion);
  const durations = meter.createHistogram("tinker.client.operation.duration", { unit: "s" });
  const retries = meter.createCounter("tinker.client.retries");
  const spans = new Map<number, Span>();

  const onEnd = (event: Extract<ClientEvent, { type: "operationEnd" }>): void => {
    const { operation, subject, requestIds, error, durationMs } = event;
    const isError = error !== undefined;
    durations.record(durationMs / 1000, { "tinker.operation": operation, error: isError });
    const span = spans.get(event.operationId);
    if (!span) return;
    spans.delete(event.operationId);
    span.setAttributes({ "tinker.subject": subject, "tinker.request_ids": [...requestIds] });
    if (isError) {
      const exception = error instanceof Error ? error : new Error("aborted", { cause: error });
      span.recordException(exception);
      span.setStatus({ code: SpanStatusCode.ERROR, message: exception.message });
    }
    span.end();
  };

  events.subscribe((event) => {
    switch (event.type) {
      case "operationStart": {
        const span = tracer.startSpan(`tinker ${event.operation}`, { kind: SpanKind.CLIENT });
        // Without a recorder there is no span to end.
        if (span.isRecording()) spans.set(event.operationId, span);
        break;
      }
      case "operationEnd":
        onEnd(event);
        break;
      case "retry":
        retries.add(1, {
          "tinker.endpoint": event.endpoint,
          "tinker.retried_by": event.by,
          "http.response.status_code": event.status ?? 0,
        });
        break;
      default:
    }
  });
}
