import type { StudioCheckpoint } from "./checkpoints.js";
import type { StudioExhibitKind } from "./exhibits.js";
import type { StudioControls } from "./steering.js";
import type { StudioNumber, StudioTime } from "./values.js";

/** What a run is doing. */
export type StudioStatus =
  | "running"
  | "paused"
  | "idle"
  | "completed"
  | "failed"
  | "stopped"
  | "unloaded";

/** Where a run is known from: the server's own recording, a logger, a folder of files. */
export type StudioSource = "server" | "log" | "folder";

/** What is known of one metric without reading its points. */
export interface StudioSummary {
  /** The key that it was logged under. */
  readonly key: string;
  /** First value. */
  readonly first: StudioNumber;
  /** Last value. */
  readonly last: StudioNumber;
  /** Mean of the last values with a half-life of ten steps. */
  readonly smoothedLast: StudioNumber;
  /** Least finite value; null without one. */
  readonly min: number | null;
  /** Largest finite value; null without one. */
  readonly max: number | null;
  /** Points that are not finite. */
  readonly nonFinite: number;
}

/** One run of the list. */
export interface StudioRun {
  /** Its id: a model's id for `server`; contains `:`, so encode it in paths. */
  readonly id: string;
  /** What people call it. */
  readonly name: string;
  /** Where it is known from. */
  readonly source: StudioSource;
  /** What is done: told by the losses and the configuration. */
  readonly kind: "supervised" | "rl" | "preference" | "unknown";
  /** Runs that belong together. */
  readonly group: string | null;
  /** Labels. */
  readonly tags: readonly string[];
  /** The base model, where known. */
  readonly baseModel: string | null;
  /** Rank of the adapter, where known. */
  readonly rank: number | null;
  /** What it is doing. */
  readonly status: StudioStatus;
  /** Why, in the server's own words. */
  readonly statusReason: string | null;
  /** Optimizer steps done, or the last logged step. */
  readonly step: number;
  /** How far it is, from 0 to 1, where the loop tells. */
  readonly progress: number | null;
  /** The loss per token that was trained on. */
  readonly nll: StudioSummary | null;
  /** The reward of the rollouts. */
  readonly reward: StudioSummary | null;
  /** Tokens per second over the last steps. */
  readonly tokensPerSecond: number | null;
  /** The nll (else the reward) from beginning to end in at most 32 means; null where nothing was finite. */
  readonly curve: readonly (number | null)[];
  /** Models that belong to it. */
  readonly models: readonly string[];
  /** The checkpoint that it began from: `tinker://…`. */
  readonly parent: string | null;
  /** Which start of the program this is, from 1. */
  readonly attempt: number;
  /** Records that its logger had to drop. */
  readonly dropped: number;
  /** Stays on top, and is kept when room is made. */
  readonly isPinned: boolean;
  /** When it was put away; null when it was not. */
  readonly archivedAt: StudioTime | null;
  /** When it began. */
  readonly createdAt: StudioTime;
  /** When something happened last. */
  readonly updatedAt: StudioTime;
}

/** `GET runs?q&sort&cursor&limit&archived`. */
export interface StudioRuns {
  /** The runs of this page. */
  readonly runs: readonly StudioRun[];
  /** Asks for the next ones; null at the end. */
  readonly cursor: string | null;
}

/** One series of a run. */
export interface StudioSeriesInfo {
  /** Its name. */
  readonly key: string;
  /** Who wrote it: the server itself or a logger. */
  readonly by: "server" | "log";
  /** Points of all attempts. */
  readonly count: number;
  /** The last x. */
  readonly lastX: number;
  /** First, last, least and largest value. */
  readonly summary: StudioSummary;
}

/** Something that happened at a step. */
export interface StudioMark {
  /** The step. */
  readonly x: number;
  /** When. */
  readonly at: StudioTime;
  /** What kind of thing. */
  readonly kind: "failed" | "checkpoint" | "loaded" | "attempt" | "paused" | "resumed" | "stopped";
  /** What happened, in words. */
  readonly text: string;
  /** The request that failed or the path of the checkpoint. */
  readonly subject: string | null;
}

/** `GET runs/{id}`: one run with everything but points and exhibits. */
export interface StudioRunDetail extends StudioRun {
  /** What it was configured with: nested as it was given; `_` keys are the logger's own. */
  readonly config: unknown;
  /** Every series it has. */
  readonly series: readonly StudioSeriesInfo[];
  /** What happened at which step. */
  readonly marks: readonly StudioMark[];
  /** Its checkpoints, oldest first. */
  readonly checkpoints: readonly StudioCheckpoint[];
  /** Steps that have exhibits, by kind, in order. */
  readonly exhibitSteps: Readonly<Record<StudioExhibitKind, readonly number[]>>;
  /** What a person has asked its loop for. */
  readonly controls: StudioControls;
  /** Whether a logger listens to controls. */
  readonly hasControls: boolean;
  /** Whether its lane is held. */
  readonly isPaused: boolean;
  /** Names of the files that can be fetched (`GET runs/{id}/files/{name}`). */
  readonly files: readonly StudioFile[];
  /** Where its folder is, where there is one. */
  readonly folder: string | null;
  /** Names under which earlier attempts ended, for the tooltip. */
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
