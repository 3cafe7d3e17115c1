import type { CheckpointRow } from "./checkpoint-row.js";
import type { LineValue } from "./json-lines.js";
import type { Span } from "./step-spans.js";

/** Named values of one step; text stands for itself, undefined ones are left out. */
export type Metrics = Readonly<Record<string, number | string | boolean | undefined>>;

/** How much a message matters. */
export type TextLevel = "info" | "warning" | "error";

/** Everything that a run tells, one after the other. */
export type RunRecord =
  | { readonly kind: "open"; readonly folder: string; readonly config: LineValue }
  | {
      readonly kind: "metrics";
      readonly step: number | undefined;
      readonly metrics: Metrics;
      /** Seconds since 1970. */
      readonly time: number;
      readonly attempt: number;
    }
  | { readonly kind: "checkpoint"; readonly row: CheckpointRow }
  | { readonly kind: "spans"; readonly step: number; readonly spans: readonly Span[] }
  | { readonly kind: "text"; readonly level: TextLevel; readonly text: string }
  | { readonly kind: "close" };

/**
 * Somewhere a run is told to besides its folder. `log` must return at once; a sink that throws is told
 * of in the run's text log and not asked again.
 */
export interface RunSink {
  /** Takes one record. */
  log(record: RunRecord): void;
  /** Ends the sink; what it holds is sent on. */
  close?(): Promise<void> | void;
}
