import type { CheckpointRow } from "./checkpoint-row.js";
import type { LineValue } from "./json-lines.js";
import type { Span } from "./step-spans.js";

/** Named values of one step; text stands for itself, undefined ones are left out. */
export type Metrics = Readonly<Record<string, number | string | boolean | undefined>>;

/** How much a message matters. */
export type TextLevel = "info" | "warning" | "error";

/** Everything that a run tells, one after the other. */
export type RunRecord =
  | {
      /** The run begins or goes on. */
      readonly kind: "open";
      /** Where it is written. */
      readonly folder: string;
      /** What it was configured with. */
      readonly config: LineValue;
    }
  | {
      /** Metrics of a step. */
      readonly kind: "metrics";
      /** The step, or undefined for metrics without one. */
      readonly step: number | undefined;
      /** The values, by name. */
      readonly metrics: Metrics;
      /** Seconds since 1970. */
      readonly time: number;
      /** Which start of the program this is, from 1. */
      readonly attempt: number;
    }
  | {
      /** A checkpoint was saved. */
      readonly kind: "checkpoint";
      /** What the folder keeps of it. */
      readonly row: CheckpointRow;
    }
  | {
      /** Where the time of a step went. */
      readonly kind: "spans";
      /** The step. */
      readonly step: number;
      /** What took how long. */
      readonly spans: readonly Span[];
    }
  | {
      /** A line for people. */
      readonly kind: "text";
      /** How much it matters. */
      readonly level: TextLevel;
      /** The line. */
      readonly text: string;
    }
  | {
      /** The run is over, or the program ends. */
      readonly kind: "close";
    };

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
