import type { StudioLane } from "./machine.js";

/** The changed part of a run: its row, marks and controls; its points; its exhibits; its text log; its checkpoints. */
export type StudioChange = "run" | "series" | "exhibit" | "log" | "checkpoint";

/**
 * An event of `GET events?topics=…`, a stream of server-sent events: `event` is the kind, `data` the JSON
 * of the rest, `id` the cursor that `Last-Event-ID` continues from. Topics, joined by commas: `runs` (run,
 * checkpoint, session), `run:ID` (series, exhibit, log of that run), `queue`. Events name the change, and
 * the page fetches it. After `reset` the page fetches everything that it shows.
 */
export type StudioEvent =
  | {
      /** The kind of event. */
      readonly kind: "reset";
      /** The cause, as a sentence. */
      readonly reason: string;
    }
  | {
      /** The changed part of the run. */
      readonly kind: StudioChange;
      /** The run's id. */
      readonly run: string;
      /** Grows with every change of the run. */
      readonly version: number;
    }
  | {
      /** The kind of event. */
      readonly kind: "queue";
      /** All queues, whenever one has changed. */
      readonly lanes: readonly StudioLane[];
    }
  | {
      /** The kind of event. */
      readonly kind: "session";
      /** The session. */
      readonly id: string;
      /** Its new state. */
      readonly change: "opened" | "closed";
    };
