import {
  array,
  boolean,
  enumeration,
  integer,
  openObject,
  optional,
  record,
  required,
  strictObject,
  string,
  timestamp,
  withDefault,
  type ValueOf,
} from "../schema/schema.js";

export const CheckpointType = enumeration(["training", "sampler"]);
/** Training checkpoints can be trained on, sampler checkpoints only sampled from. */
export type CheckpointType = ValueOf<typeof CheckpointType>;

export const Cursor = openObject("Cursor", {
  offset: integer,
  limit: integer,
  totalCount: integer,
});
export type Cursor = ValueOf<typeof Cursor>;

export const Checkpoint = openObject("Checkpoint", {
  checkpointId: string,
  checkpointType: CheckpointType,
  time: timestamp,
  tinkerPath: string,
  sizeBytes: optional(integer),
  public: withDefault(boolean, false),
  expiresAt: optional(timestamp, { since: "0.9.0" }),
});
export type Checkpoint = ValueOf<typeof Checkpoint>;

export const CheckpointsListResponse = openObject("CheckpointsListResponse", {
  checkpoints: array(Checkpoint),
  cursor: optional(Cursor),
});
export type CheckpointsListResponse = ValueOf<typeof CheckpointsListResponse>;

export const TrainingRun = openObject("TrainingRun", {
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
});
export type TrainingRun = ValueOf<typeof TrainingRun>;

export const TrainingRunsResponse = openObject("TrainingRunsResponse", {
  trainingRuns: array(TrainingRun),
  cursor: Cursor,
});
export type TrainingRunsResponse = ValueOf<typeof TrainingRunsResponse>;

export const ListSessionsResponse = openObject(
  "ListSessionsResponse",
  { sessions: array(string) },
  { since: "0.5.0" },
);
export type ListSessionsResponse = ValueOf<typeof ListSessionsResponse>;

export const GetSessionResponse = openObject(
  "GetSessionResponse",
  { trainingRunIds: array(string), samplerIds: array(string) },
  { since: "0.5.0" },
);
export type GetSessionResponse = ValueOf<typeof GetSessionResponse>;

export const AssignSessionProjectRequest = strictObject(
  "AssignSessionProjectRequest",
  { projectId: string },
  { since: "0.22.0" },
);
export type AssignSessionProjectRequest = ValueOf<typeof AssignSessionProjectRequest>;

export const TraceExportResponse = openObject(
  "TraceExportResponse",
  {
    status: required(enumeration(["pending", "ready", "failed"]), {}),
    url: optional(string),
    error: optional(string),
  },
  { since: "0.24.0" },
);
export type TraceExportResponse = ValueOf<typeof TraceExportResponse>;

export const AuditLogEntry = openObject(
  "AuditLogEntry",
  {
    timestamp,
    event: string,
    modelId: optional(string),
    tinkerPath: optional(string),
    purpose: optional(string),
  },
  { since: "0.20.0" },
);
export type AuditLogEntry = ValueOf<typeof AuditLogEntry>;

export const AuditLogResponse = openObject(
  "AuditLogResponse",
  { entries: array(AuditLogEntry) },
  { since: "0.20.0" },
);
export type AuditLogResponse = ValueOf<typeof AuditLogResponse>;

export const WhoamiResponse = openObject(
  "WhoamiResponse",
  { userUrn: string, email: optional(string) },
  { since: "0.23.2" },
);
export type WhoamiResponse = ValueOf<typeof WhoamiResponse>;
