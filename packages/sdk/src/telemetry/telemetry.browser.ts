import { noTelemetry, type TelemetrySink } from "./sink.js";

/** Reports nothing: what a page does is nobody's business. Takes the place of telemetry.ts in bundles for browsers. */
export function openTelemetry(_options: unknown): TelemetrySink {
  return noTelemetry;
}
