import {
  array,
  boolean,
  describedBy,
  integer,
  openEnumeration,
  openObject,
  optional,
  record,
  required,
  strictObject,
  string,
  timestamp,
  withDefault,
  type KeepsUnknownFields,
  type ValueOf,
} from "../schema/schema.js";
import type { Timestamp } from "../schema/timestamp.js";

export const CheckpointType = openEnumeration(["training", "sampler"]);
/** Training checkpoints can be trained on, sampler checkpoints only sampled from; newer servers may know more. */
export type CheckpointType = ValueOf<typeof CheckpointType>;

/** Which part of a list an answer holds. */
export interface Cursor extends KeepsUnknownFields {
  /** Items before the first one of this page. */
  offset: number;
  /** Most items that the page could hold. */
  limit: number;
  /** Items in the whole list. */
  totalCount: number;
}

export const Cursor = describedBy<Cursor>()(
  openObject("Cursor", {
    offset: integer,
    limit: integer,
    totalCount: integer,
  }),
);

/** Saved weights of a training run. */
export interface Checkpoint extends KeepsUnknownFields {
  /** Kind and name within the run, such as `weights/final`. */
  checkpointId: string;
  /** Whether it can be trained on or only sampled from. */
  checkpointType: CheckpointType;
  /** When it was saved. */
  time: Timestamp;
  /** The whole address, `tinker://<run>/<kind>/<name>`: what `loadState` and `createSamplingClient` take. */
  tinkerPath: string;
  /** Size in bytes, where the server knows it. */
  sizeBytes: number | null;
  /**
   * Whether everybody may use it.
   * @default false
   */
  public: boolean;
  /** When it will be deleted; null means never. */
  expiresAt: Timestamp | null;
}

export const Checkpoint = describedBy<Checkpoint>()(
  openObject("Checkpoint", {
    checkpointId: string,
    checkpointType: CheckpointType,
    time: timestamp,
    tinkerPath: string,
    sizeBytes: optional(integer),
    public: withDefault(boolean, false),
    expiresAt: optional(timestamp, { since: "0.9.0" }),
  }),
);

/** A list of checkpoints. */
export interface CheckpointsListResponse extends KeepsUnknownFields {
  /** The checkpoints, newest first. */
  checkpoints: Checkpoint[];
  /** Which part of the list this is; null when it is all of it. */
  cursor: Cursor | null;
}

export const CheckpointsListResponse = describedBy<CheckpointsListResponse>()(
  openObject("CheckpointsListResponse", {
    checkpoints: array(Checkpoint),
    cursor: optional(Cursor),
  }),
);

/** One model that was trained, and what is left of it. */
export interface TrainingRun extends KeepsUnknownFields {
  /** Id of the run; also the id of its model. */
  trainingRunId: string;
  /** The model that the training started from. */
  baseModel: string;
  /** Whose run it is. */
  modelOwner: string;
  /** Whether an adapter was trained rather than all weights. */
  isLora: boolean;
  /**
   * Whether the server lost track of its state, so that it must start again from a checkpoint.
   * @default false
   */
  corrupted: boolean;
  /** Rank of the adapter. */
  loraRank: number | null;
  /** When the run last did anything. */
  lastRequestTime: Timestamp;
  /** The newest checkpoint that can be trained on. */
  lastCheckpoint: Checkpoint | null;
  /** The newest checkpoint that can only be sampled from. */
  lastSamplerCheckpoint: Checkpoint | null;
  /** The metadata that the run was created with. */
  userMetadata: Record<string, string> | null;
}

export const TrainingRun = describedBy<TrainingRun>()(
  openObject("TrainingRun", {
    trainingRunId: string,
    baseModel: string,
    modelOwner: string,
    isLora: boolean,
    corrupted: withDefault(boolean, false),
    loraRank: optional(integer),
    lastRequestTime: timestamp,
    lastCheckpoint: optional(Checkpoint),
    lastSamplerCheckpoint: optional(Checkpoint),
    userMetadata: optional(record(string)),
  }),
);

/** One page of training runs. */
export interface TrainingRunsResponse extends KeepsUnknownFields {
  /** The runs, latest activity first. */
  trainingRuns: TrainingRun[];
  /** Which part of the list this is; null from servers that do not say. */
  cursor: Cursor | null;
}

export const TrainingRunsResponse = describedBy<TrainingRunsResponse>()(
  openObject("TrainingRunsResponse", {
    trainingRuns: array(TrainingRun),
    cursor: optional(Cursor, { isPromised: true }),
  }),
);

/** One page of sessions. */
export interface ListSessionsResponse extends KeepsUnknownFields {
  /** Ids of the sessions, newest first. */
  sessions: string[];
}

export const ListSessionsResponse = describedBy<ListSessionsResponse>()(
  openObject("ListSessionsResponse", { sessions: array(string) }, { since: "0.5.0" }),
);

/** What a session made. */
export interface GetSessionResponse extends KeepsUnknownFields {
  /** Ids of its training runs. */
  trainingRunIds: string[];
  /** Ids of its samplers. */
  samplerIds: string[];
}

export const GetSessionResponse = describedBy<GetSessionResponse>()(
  openObject(
    "GetSessionResponse",
    { trainingRunIds: array(string), samplerIds: array(string) },
    { since: "0.5.0" },
  ),
);

/** Puts a session into a project. */
export interface AssignSessionProjectRequest {
  /** Id of the project; it cannot be taken away again. */
  projectId: string;
}

export const AssignSessionProjectRequest = describedBy<AssignSessionProjectRequest>()(
  strictObject("AssignSessionProjectRequest", { projectId: string }, { since: "0.22.0" }),
);

/** How far the export of a session's trace is. */
export interface TraceExportResponse extends KeepsUnknownFields {
  /** Whether it is being made, there, or could not be made. */
  status: "pending" | "ready" | "failed" | (string & {});
  /** Where to fetch it without a key, for about an hour; when it is ready. */
  url: string | null;
  /** The server's words; when it failed. */
  error: string | null;
}

export const TraceExportResponse = describedBy<TraceExportResponse>()(
  openObject(
    "TraceExportResponse",
    {
      status: required(openEnumeration(["pending", "ready", "failed"]), {}),
      url: optional(string),
      error: optional(string),
    },
    { since: "0.24.0" },
  ),
);

/** One thing that happened to the account. */
export interface AuditLogEntry extends KeepsUnknownFields {
  /** When it happened. */
  timestamp: Timestamp;
  /** What happened, by the server's name for it. */
  event: string;
  /** The model it happened to. */
  modelId: string | null;
  /** The checkpoint it happened to. */
  tinkerPath: string | null;
  /** What the access was for. */
  purpose: string | null;
}

export const AuditLogEntry = describedBy<AuditLogEntry>()(
  openObject(
    "AuditLogEntry",
    {
      timestamp,
      event: string,
      modelId: optional(string),
      tinkerPath: optional(string),
      purpose: optional(string),
    },
    { since: "0.20.0" },
  ),
);

/** The audit log of one day. */
export interface AuditLogResponse extends KeepsUnknownFields {
  /** What happened, in order. */
  entries: AuditLogEntry[];
}

export const AuditLogResponse = describedBy<AuditLogResponse>()(
  openObject("AuditLogResponse", { entries: array(AuditLogEntry) }, { since: "0.20.0" }),
);

/** Who is asking, read from the credential. */
export interface WhoamiResponse extends KeepsUnknownFields {
  /** The user's name in the service. */
  userUrn: string;
  /** The user's address, where the credential says it. */
  email: string | null;
}

export const WhoamiResponse = describedBy<WhoamiResponse>()(
  openObject("WhoamiResponse", { userUrn: string, email: optional(string) }, { since: "0.23.2" }),
);
