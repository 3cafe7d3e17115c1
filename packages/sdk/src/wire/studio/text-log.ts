import type { StudioTime } from "./values.js";

/** A line of a run's text log. */
export interface StudioLogLine {
  /** Its number, from 0. */
  readonly n: number;
  /** When, where known. */
  readonly at: StudioTime | null;
  /** How much it matters. */
  readonly level: "info" | "warning" | "error";
  /** The line. */
  readonly text: string;
}

/** `GET runs/{id}/log?after&before&limit&level&q`: without `after` the end of it. */
export interface StudioLog {
  /** In order. */
  readonly lines: readonly StudioLogLine[];
  /** The number that the next line will have. */
  readonly next: number;
}

/** `GET runs/{id}/spans?from&to`: where the time of steps went. */
export interface StudioSpans {
  /** In order. */
  readonly steps: readonly {
    readonly step: number;
    readonly spans: readonly {
      readonly name: string;
      readonly startSeconds: number;
      readonly endSeconds: number;
    }[];
  }[];
}
