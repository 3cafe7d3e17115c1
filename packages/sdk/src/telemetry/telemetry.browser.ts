import { noTelemetry, type TelemetrySink } from "./sink.js";

/** Reports nothing, for the privacy of a page's visitors. Replaces telemetry.ts in bundles for browsers. */
export function openTelemetry(_options: unknown): TelemetrySink {
  return noTelemetry;
}
