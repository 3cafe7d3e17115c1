import type { Gauge } from "@opentelemetry/api";
import { DependencyError } from "../errors/dependency-error.js";
import type { RunSink } from "./run-record.js";

/** Tells a run's metrics to OpenTelemetry: a gauge `tinker.run.NAME` each, with the step as attribute. */
export async function openTelemetrySink(
  attributes: Readonly<Record<string, string>> = {},
): Promise<RunSink> {
  const { metrics } = await import("@opentelemetry/api").catch((cause: unknown) => {
    throw new DependencyError("@opentelemetry/api", "to log runs to OpenTelemetry", { cause });
  });
  const meter = metrics.getMeter("tinker-ts");
  const gauges = new Map<string, Gauge>();
  return {
    log(record) {
      if (record.kind !== "metrics") return;
      for (const [key, value] of Object.entries(record.metrics)) {
        if (typeof value !== "number") continue;
        const gauge = gauges.get(key) ?? meter.createGauge(`tinker.run.${key}`);
        gauges.set(key, gauge);
        gauge.record(value, {
          ...attributes,
          ...(record.step !== undefined && { step: record.step }),
        });
      }
    },
  };
}
