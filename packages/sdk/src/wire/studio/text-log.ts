import type { StudioTime } from "./values.js";

/** A line of a run's text log. */
export interface StudioLogLine {
  /** Its number, from 0. */
  readonly n: number;
  /** When it was written, if known. */
  readonly at: StudioTime | null;
  /** Its level. */
  readonly level: "info" | "warning" | "error";
  /** The line. */
  readonly text: string;
}

/** `GET runs/{id}/log?after&before&limit&level&q`: without `after` the end of it. */
export interface StudioLog {
  /** In order. */
  readonly lines: readonly StudioLogLine[];
  /** The number of the next line. */
  readonly next: number;
}

/** `GET runs/{id}/spans?from&to`: the time spans of steps. */
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
