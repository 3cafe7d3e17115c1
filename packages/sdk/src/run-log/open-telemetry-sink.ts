import type { Gauge } from "@opentelemetry/api";
import { DependencyError } from "../errors/tinker-error.js";
import type { RunSink } from "./run-record.js";

/** Records a run's metrics in OpenTelemetry: a gauge `tinker.run.NAME` each, with the step as attribute. */
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

/** A piece of a step's time, in seconds from the step's first span. */
export interface Span {
  /** What was done. */
  readonly name: string;
  /** When it began, in seconds since the start of the step. */
  readonly startSeconds: number;
  /** When it ended, in seconds since the start of the step. */
  readonly endSeconds: number;
}

/** Takes the time of what is done within one step. */
export class StepSpans {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #spans: Span[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#startedAt = now();
  }

  /** All spans so far, in the order in which they ended. */
  get spans(): readonly Span[] {
    return this.#spans;
  }

  /** Measures the time of an action, also of one that fails. */
  async span<T>(name: string, work: () => PromiseLike<T> | T): Promise<T> {
    const startSeconds = this.#seconds();
    try {
      return await work();
    } finally {
      this.#spans.push({ name, startSeconds, endSeconds: this.#seconds() });
    }
  }

  /** `time/NAME` for a span that occurred once, else its total, count, mean and maximum; `time/total`. */
  metrics(): Record<string, number> {
    const byName = new Map<string, number[]>();
    for (const { name, startSeconds, endSeconds } of this.#spans) {
      byName.set(name, [...(byName.get(name) ?? []), endSeconds - startSeconds]);
    }
    const result: Record<string, number> = {};
    for (const [name, durations] of byName) {
      const total = durations.reduce((sum, duration) => sum + duration, 0);
      if (durations.length === 1) {
        result[`time/${name}`] = total;
        continue;
      }
      result[`time/${name}:total`] = total;
      result[`time/${name}:count`] = durations.length;
      result[`time/${name}:mean`] = total / durations.length;
      result[`time/${name}:max`] = Math.max(...durations);
    }
    result["time/total"] = this.#seconds();
    return result;
  }

  #seconds(): number {
    return (this.#now() - this.#startedAt) / 1000;
  }
}
