import type { Severity } from "../types/telemetry.js";

/** Collects events and reports them to the service. */
export interface TelemetrySink {
  /** A diagnostic event. */
  log(name: string, severity: Severity, data: Readonly<Record<string, unknown>>): void;
  /** An error that reaches the caller; resolves when it was sent, after a second at the latest. */
  captureFatal(error: unknown): Promise<void>;
  /** Ends sending; what is still queued is dropped. */
  stop(): void;
}

/** For clients with telemetry switched off. */
export const noTelemetry: TelemetrySink = {
  log: () => {},
  captureFatal: () => Promise.resolve(),
  stop: () => {},
};
