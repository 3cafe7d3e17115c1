import type { StudioCapture } from "./login.js";
import type { StudioTime } from "./values.js";

/** A queue of one model. */
export interface StudioLane {
  /** The model. */
  readonly model: string;
  /** Its run. */
  readonly run: string;
  /** What people call that. */
  readonly runName: string;
  /** What runs now. */
  readonly running: {
    readonly kind: string;
    readonly seq: number | null;
    readonly since: StudioTime;
  } | null;
  /** Requests that wait. */
  readonly waiting: number;
  /** When the oldest of them was accepted. */
  readonly oldestAt: StudioTime | null;
  /** Why it waits, as pollers are told; null while it runs. */
  readonly note: { readonly state: string; readonly reason: string | null } | null;
  /** Whether it is held here. */
  readonly isPaused: boolean;
  /** Whether it is in memory. */
  readonly isLive: boolean;
}

/** A session. */
export interface StudioSession {
  /** Its id. */
  readonly id: string;
  /** The client's name and version. */
  readonly client: string | null;
  /** Its tags. */
  readonly tags: readonly string[];
  /** When it began. */
  readonly createdAt: StudioTime;
  /** Last sign of life. */
  readonly lastSeenAt: StudioTime;
  /** Its models. */
  readonly models: readonly string[];
}

/** Work of one slot of time. */
export interface StudioSlot {
  /** Its beginning. */
  readonly at: StudioTime;
  /** Milliseconds that requests which ended in it had waited. */
  readonly waitMs: number;
  /** Milliseconds of training. */
  readonly trainingMs: number;
  /** Milliseconds of sampling; several sequences run at once. */
  readonly samplingMs: number;
  /** Tokens trained on. */
  readonly trainedTokens: number;
  /** Tokens of prompts and answers. */
  readonly sampledTokens: number;
}

/** `GET machine`. */
export interface StudioMachine {
  /** Now. */
  readonly at: StudioTime;
  /** Since when the server runs. */
  readonly startedAt: StudioTime;
  /** The engine. */
  readonly engine: {
    readonly threads: number;
    /** What it computes on and why; null before it has started, with the first model. */
    readonly device: { readonly name: "cpu" | "gpu"; readonly reason: string } | null;
    /** Shares of the last minute, from 0 to 1. */
    readonly training: number;
    readonly sampling: number;
    readonly idle: number;
  };
  /** Memory of the process and of the machine. */
  readonly memory: {
    readonly usedBytes: number;
    readonly totalBytes: number;
    readonly freeBytes: number;
  };
  /** The disk of the data directory. */
  readonly disk: {
    readonly freeBytes: number;
    readonly totalBytes: number;
    /** Whether work is about to be lost for lack of room. */
    readonly isNearlyFull: boolean;
    /** What could be deleted, largest first. */
    readonly largest: readonly { readonly what: string; readonly sizeBytes: number }[];
  };
  /** Every model that is open. */
  readonly lanes: readonly StudioLane[];
  /** Samples. */
  readonly samples: {
    readonly running: number;
    readonly places: number;
    readonly waiting: number;
    readonly sessions: number;
    readonly note: string | null;
  };
  /** What the turns of this owner have cost and how many wait, by what is scarce; of an older server absent. */
  readonly accounts?: readonly {
    readonly resource: string;
    readonly spent: number;
    readonly waiting: number;
  }[];
  /** Open sessions. */
  readonly sessions: readonly StudioSession[];
  /** Base models. */
  readonly models: readonly { readonly name: string; readonly isLoaded: boolean }[];
  /** The last ten minutes in slots of ten seconds. */
  readonly timeline: readonly StudioSlot[];
  /** What the studio itself keeps. */
  readonly kept: {
    readonly seriesBytes: number;
    readonly maxSeriesBytes: number;
    readonly exhibitBytes: number;
    readonly maxExhibitBytes: number;
    readonly capture: StudioCapture;
  };
}

/** `GET usage?from&to`: what was used, by day, run and model; adds up to billing. */
export interface StudioUsage {
  /** One row per day, run and base model. */
  readonly rows: readonly {
    readonly day: string;
    readonly run: string | null;
    readonly runName: string | null;
    readonly session: string | null;
    readonly baseModel: string;
    readonly trainingTokens: number;
    readonly prefillTokens: number;
    readonly sampledTokens: number;
  }[];
}
