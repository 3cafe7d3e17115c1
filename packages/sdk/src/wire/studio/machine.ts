import type { StudioCapture } from "./login.js";
import type { StudioTime } from "./values.js";

/** A queue of one model. */
export interface StudioLane {
  /** The model. */
  readonly model: string;
  /** Its run. */
  readonly run: string;
  /** The name of the run. */
  readonly runName: string;
  /** The running request. */
  readonly running: {
    readonly kind: string;
    readonly seq: number | null;
    readonly since: StudioTime;
  } | null;
  /** Number of waiting requests. */
  readonly waiting: number;
  /** When the oldest of them was accepted. */
  readonly oldestAt: StudioTime | null;
  /** The reason for waiting, as in responses to polls; null while it runs. */
  readonly note: { readonly state: string; readonly reason: string | null } | null;
  /** Whether it is paused in the studio. */
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
  /** Last seen. */
  readonly lastSeenAt: StudioTime;
  /** Its models. */
  readonly models: readonly string[];
}

/** Work in one time slot. */
export interface StudioSlot {
  /** Its beginning. */
  readonly at: StudioTime;
  /** Milliseconds of waiting, of requests that ended in it. */
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
  /** When the server started. */
  readonly startedAt: StudioTime;
  /** The engine. */
  readonly engine: {
    readonly threads: number;
    /** The device and the reason for it; null until the engine starts with the first model. */
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
    /** Whether free space is critically low. */
    readonly isNearlyFull: boolean;
    /** Candidates for deletion, largest first. */
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
  /** Data stored by the studio itself. */
  readonly kept: {
    readonly seriesBytes: number;
    readonly maxSeriesBytes: number;
    readonly exhibitBytes: number;
    readonly maxExhibitBytes: number;
    readonly capture: StudioCapture;
  };
}

/** `GET usage?from&to`: usage by day, run and model; adds up to billing. */
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
