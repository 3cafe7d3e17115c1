import type { StudioExhibitKind } from "./exhibits.js";
import type { StudioLane } from "./machine.js";
import type { StudioMark, StudioRun } from "./runs.js";
import type { StudioControls } from "./steering.js";
import type { StudioLogLine } from "./text-log.js";
import type { StudioNumber, StudioTime } from "./values.js";

/**
 * An event of `GET events?topics=…`, a stream of server-sent events: `event` is the kind, `data` the JSON
 * of the rest, `id` the cursor that `Last-Event-ID` goes on from. Topics, joined by commas: `runs` (run,
 * checkpoint, session, notice), `run:ID` (series, exhibit, log of that run), `queue`. After `reset` the page
 * asks again for what it shows.
 */
export type StudioEvent =
  | {
      /** What happened. */
      readonly kind: "reset";
      /** Why, in words. */
      readonly reason: string;
    }
  | {
      /** What happened. */
      readonly kind: "run";
      /** The run: its row, or its id. */
      readonly run: StudioRun;
    }
  | {
      /** What happened. */
      readonly kind: "removed";
      /** The run: its row, or its id. */
      readonly run: string;
    }
  | {
      /** What happened. */
      readonly kind: "series";
      /** The run: its row, or its id. */
      readonly run: string;
      /** New values. */
      readonly points: readonly StudioPoint[];
    }
  | {
      /** What happened. */
      readonly kind: "exhibit";
      /** The run: its row, or its id. */
      readonly run: string;
      /** The step. */
      readonly step: number;
      /** What was kept. */
      readonly exhibit: StudioExhibitKind;
      /** How many. */
      readonly count: number;
    }
  | {
      /** What happened. */
      readonly kind: "mark";
      /** The run: its row, or its id. */
      readonly run: string;
      /** What happened at which step. */
      readonly mark: StudioMark;
    }
  | {
      /** What happened. */
      readonly kind: "controls";
      /** The run: its row, or its id. */
      readonly run: string;
      /** What is asked for now. */
      readonly controls: StudioControls;
    }
  | {
      /** What happened. */
      readonly kind: "log";
      /** The run: its row, or its id. */
      readonly run: string;
      /** New lines; none when only that there are some is known. */
      readonly lines: readonly StudioLogLine[];
    }
  | {
      /** What happened. */
      readonly kind: "queue";
      /** All queues, whenever one has changed. */
      readonly lanes: readonly StudioLane[];
    }
  | {
      /** What happened. */
      readonly kind: "checkpoint";
      /** The checkpoint. */
      readonly path: string;
      /** What became of it. */
      readonly change: "saved" | "changed";
    }
  | {
      /** What happened. */
      readonly kind: "session";
      /** The session. */
      readonly id: string;
      /** What became of it. */
      readonly change: "opened" | "closed";
    }
  | {
      /** What happened. */
      readonly kind: "notice";
      /** How much it matters. */
      readonly level: "info" | "warning" | "error";
      /** The sentence. */
      readonly text: string;
    };

/**
 * New values at an x. A later point of the same x and attempt replaces the values it names: passes of one
 * step are merged.
 */
export interface StudioPoint {
  /** The step. */
  readonly x: number;
  /** When. */
  readonly at: StudioTime;
  /** Which start of the program. */
  readonly attempt: number;
  /** By key. */
  readonly values: Readonly<Record<string, StudioNumber>>;
}
