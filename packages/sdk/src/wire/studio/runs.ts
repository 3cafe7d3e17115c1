import type { StudioCheckpoint } from "./checkpoints.js";
import type { StudioExhibitKind } from "./exhibits.js";
import type { StudioControls } from "./steering.js";
import type { StudioNumber, StudioTime } from "./values.js";

/** The status of a run. */
export type StudioStatus =
  | "running"
  | "paused"
  | "idle"
  | "completed"
  | "failed"
  | "stopped"
  | "unloaded";

/** The source of a run: the server's own recording, a logger, a folder of files. */
export type StudioSource = "server" | "log" | "folder";

/** Summary of one metric. */
export interface StudioSummary {
  /** The key that it was logged under. */
  readonly key: string;
  /** First value. */
  readonly first: StudioNumber;
  /** Last value. */
  readonly last: StudioNumber;
  /** Mean of the last values with a half-life of ten steps. */
  readonly smoothedLast: StudioNumber;
  /** Smallest finite value; null without one. */
  readonly min: number | null;
  /** Largest finite value; null without one. */
  readonly max: number | null;
  /** Number of non-finite points. */
  readonly nonFinite: number;
}

/** One run of the list. */
export interface StudioRun {
  /** Its id: a model's id for `server`; contains `:`, so encode it in paths. */
  readonly id: string;
  /** Its display name. */
  readonly name: string;
  /** Its source. */
  readonly source: StudioSource;
  /** The kind of training, inferred from losses and configuration. */
  readonly kind: "supervised" | "rl" | "preference" | "unknown";
  /** The group of related runs. */
  readonly group: string | null;
  /** Labels. */
  readonly tags: readonly string[];
  /** The base model, where known. */
  readonly baseModel: string | null;
  /** Rank of the adapter, where known. */
  readonly rank: number | null;
  /** Its status. */
  readonly status: StudioStatus;
  /** The reason for the status, by the server. */
  readonly statusReason: string | null;
  /** Optimizer steps done, or the last logged step. */
  readonly step: number;
  /** Progress from 0 to 1, if the loop reports it. */
  readonly progress: number | null;
  /** The loss per trained token. */
  readonly nll: StudioSummary | null;
  /** The reward of the rollouts. */
  readonly reward: StudioSummary | null;
  /** Tokens per second over the last steps. */
  readonly tokensPerSecond: number | null;
  /** The nll (else the reward) from beginning to end in at most 32 means; null where nothing was finite. */
  readonly curve: readonly (number | null)[];
  /** Models that belong to it. */
  readonly models: readonly string[];
  /** The checkpoint that it was created from: `tinker://…`. */
  readonly parent: string | null;
  /** Number of the program's start, from 1. */
  readonly attempt: number;
  /** Records dropped by its logger. */
  readonly dropped: number;
  /** Pinned runs stay on top and are not removed to free space. */
  readonly isPinned: boolean;
  /** When it was archived; null if it is not. */
  readonly archivedAt: StudioTime | null;
  /** When it was created. */
  readonly createdAt: StudioTime;
  /** When it last changed. */
  readonly updatedAt: StudioTime;
}

/** `GET runs?q&sort&cursor&limit&archived`. */
export interface StudioRuns {
  /** The runs of this page. */
  readonly runs: readonly StudioRun[];
  /** Cursor of the next page; null at the end. */
  readonly cursor: string | null;
}

/** One series of a run. */
export interface StudioSeriesInfo {
  /** Its name. */
  readonly key: string;
  /** Its writer: the server itself or a logger. */
  readonly by: "server" | "log";
  /** Points of all attempts. */
  readonly count: number;
  /** The last x. */
  readonly lastX: number;
  /** First, last, smallest and largest value. */
  readonly summary: StudioSummary;
}

/** An event at a step. */
export interface StudioMark {
  /** The step. */
  readonly x: number;
  /** When it happened. */
  readonly at: StudioTime;
  /** The kind of event. */
  readonly kind: "failed" | "checkpoint" | "loaded" | "attempt" | "paused" | "resumed" | "stopped";
  /** Description of the event. */
  readonly text: string;
  /** The request that failed or the path of the checkpoint. */
  readonly subject: string | null;
}

/** `GET runs/{id}`: one run with everything but points and exhibits. */
export interface StudioRunDetail extends StudioRun {
  /** The configuration, nested as it was logged; `_` keys are the logger's own. */
  readonly config: unknown;
  /** Every series it has. */
  readonly series: readonly StudioSeriesInfo[];
  /** Events by step. */
  readonly marks: readonly StudioMark[];
  /** Its checkpoints, oldest first. */
  readonly checkpoints: readonly StudioCheckpoint[];
  /** Steps that have exhibits, by kind, in order. */
  readonly exhibitSteps: Readonly<Record<StudioExhibitKind, readonly number[]>>;
  /** Control values requested for its loop. */
  readonly controls: StudioControls;
  /** Whether a logger reads controls. */
  readonly hasControls: boolean;
  /** Whether its queue is paused. */
  readonly isPaused: boolean;
  /** Names of the files that can be fetched (`GET runs/{id}/files/{name}`). */
  readonly files: readonly StudioFile[];
  /** The path of its folder, if there is one. */
  readonly folder: string | null;
  /** The first x of each attempt, for the tooltip. */
  readonly attempts: readonly { readonly attempt: number; readonly firstX: number }[];
}

/** A file of a run. */
export interface StudioFile {
  /** Path within the folder. */
  readonly name: string;
  /** Its size. */
  readonly sizeBytes: number;
  /** Whether it can be shown as text; others are offered as downloads. */
  readonly isText: boolean;
}
