import {
  array,
  boolean,
  integer,
  json,
  openEnumeration,
  openObject,
  optional,
  record,
  required,
  strictObject,
  string,
  timestamp,
  withDefault,
  type FieldValues,
  type OpenSchema,
  type OpenValues,
  type SchemaOf,
  type ValueOf,
} from "../schema/schema.js";
import { FinishReason } from "./service.js";

export const CheckpointType = openEnumeration(["training", "sampler"]);
/** Training checkpoints can be trained on, sampler checkpoints only sampled from; newer servers may know more. */
export type CheckpointType = ValueOf<typeof CheckpointType>;

const cursor = {
  /** Items before the first one of this page. */
  offset: integer,
  /** Most items that the page could hold. */
  limit: integer,
  /** Items in the whole list. */
  totalCount: integer,
};

/** Which part of a list an answer holds. */
export interface Cursor extends OpenValues<typeof cursor> {}
export const Cursor: OpenSchema<Cursor, typeof cursor> = openObject("Cursor", cursor);

const checkpoint = {
  /** Kind and name within the run, such as `weights/final`. */
  checkpointId: string,
  /** Whether it can be trained on or only sampled from. */
  checkpointType: CheckpointType,
  /** When it was saved. */
  time: timestamp,
  /** The whole address, `tinker://<run>/<kind>/<name>`: what `loadState` and `createSamplingClient` take. */
  tinkerPath: string,
  /** Size in bytes, where the server reports it. */
  sizeBytes: optional(integer),
  /**
   * Whether all users may read it.
   * @default false
   */
  public: withDefault(boolean, false),
  /** When it will be deleted; null means never. */
  expiresAt: optional(timestamp, { since: "0.9.0" }),
  /** The metadata that it was saved with. */
  userMetadata: optional(record(string), { since: "0.26.0" }),
  /** The base model of its run, where the server reports it. */
  baseModel: optional(string, { since: "0.39.0" }),
};

/** Saved weights of a training run. */
export interface Checkpoint extends OpenValues<typeof checkpoint> {}
export const Checkpoint: OpenSchema<Checkpoint, typeof checkpoint> = openObject(
  "Checkpoint",
  checkpoint,
);

const checkpointsListResponse = {
  /** The checkpoints, newest first. */
  checkpoints: array(Checkpoint),
  /** Which part of the list this is; null when it is all of it. */
  cursor: optional(Cursor),
};

/** A list of checkpoints. */
export interface CheckpointsListResponse extends OpenValues<typeof checkpointsListResponse> {}
export const CheckpointsListResponse: OpenSchema<
  CheckpointsListResponse,
  typeof checkpointsListResponse
> = openObject("CheckpointsListResponse", checkpointsListResponse);

const trainingRun = {
  /** Id of the run; also the id of its model. */
  trainingRunId: string,
  /** The model that the training started from. */
  baseModel: string,
  /** The owner of the run. */
  modelOwner: string,
  /** Whether an adapter was trained rather than all weights. */
  isLora: boolean,
  /**
   * Whether the server lost track of its state, so that it must start again from a checkpoint.
   * @default false
   */
  corrupted: withDefault(boolean, false),
  /** Rank of the adapter. */
  loraRank: optional(integer),
  /** When the run last did anything. */
  lastRequestTime: timestamp,
  /** The newest checkpoint that can be trained on. */
  lastCheckpoint: optional(Checkpoint),
  /** The newest checkpoint that can only be sampled from. */
  lastSamplerCheckpoint: optional(Checkpoint),
  /** The metadata that the run was created with. */
  userMetadata: optional(record(string)),
};

/** One model that was trained, and what is left of it. */
export interface TrainingRun extends OpenValues<typeof trainingRun> {}
export const TrainingRun: OpenSchema<TrainingRun, typeof trainingRun> = openObject(
  "TrainingRun",
  trainingRun,
);

const trainingRunsResponse = {
  /** The runs, latest activity first. */
  trainingRuns: array(TrainingRun),
  /** Which part of the list this is; null from servers that do not say. */
  cursor: optional(Cursor, { isPromised: true }),
};

/** One page of training runs. */
export interface TrainingRunsResponse extends OpenValues<typeof trainingRunsResponse> {}
export const TrainingRunsResponse: OpenSchema<TrainingRunsResponse, typeof trainingRunsResponse> =
  openObject("TrainingRunsResponse", trainingRunsResponse);

const listSessionsResponse = {
  /** Ids of the sessions, newest first. */
  sessions: array(string),
};

/** One page of sessions. */
export interface ListSessionsResponse extends OpenValues<typeof listSessionsResponse> {}
export const ListSessionsResponse: OpenSchema<ListSessionsResponse, typeof listSessionsResponse> =
  openObject("ListSessionsResponse", listSessionsResponse, { since: "0.5.0" });

const getSessionResponse = {
  /** Ids of its training runs. */
  trainingRunIds: array(string),
  /** Ids of its samplers. */
  samplerIds: array(string),
  /** The metadata that it was created with. */
  userMetadata: optional(record(string), { since: "0.30.0" }),
  /** Its name for people to read. */
  displayName: optional(string),
  /** How its program ended, where it reported that. */
  finishReason: optional(FinishReason),
  /** The message of its program about that. */
  finishDetail: optional(string),
};

/** What a session made. */
export interface GetSessionResponse extends OpenValues<typeof getSessionResponse> {}
export const GetSessionResponse: OpenSchema<GetSessionResponse, typeof getSessionResponse> =
  openObject("GetSessionResponse", getSessionResponse, { since: "0.5.0" });

const assignSessionProjectRequest = {
  /** Id of the project; it cannot be taken away again. */
  projectId: string,
};

/** Puts a session into a project. */
export interface AssignSessionProjectRequest extends FieldValues<
  typeof assignSessionProjectRequest
> {}
export const AssignSessionProjectRequest: SchemaOf<
  AssignSessionProjectRequest,
  typeof assignSessionProjectRequest
> = strictObject("AssignSessionProjectRequest", assignSessionProjectRequest, {
  since: "0.22.0",
});

const traceExportResponse = {
  /** Whether it is being made, there, or could not be made. */
  status: required(openEnumeration(["pending", "ready", "failed"]), {}),
  /** Where to fetch it without a key, for about an hour; when it is ready. */
  url: optional(string),
  /** The server's words; when it failed. */
  error: optional(string),
};

/** How far the export of a session's trace is. */
export interface TraceExportResponse extends OpenValues<typeof traceExportResponse> {}
export const TraceExportResponse: OpenSchema<TraceExportResponse, typeof traceExportResponse> =
  openObject("TraceExportResponse", traceExportResponse, { since: "0.24.0" });

const auditLogEntry = {
  /** When it happened. */
  timestamp,
  /** What happened, by the server's name for it. */
  event: string,
  /** The model it happened to. */
  modelId: optional(string),
  /** The checkpoint it happened to. */
  tinkerPath: optional(string),
  /** What the access was for. */
  purpose: optional(string),
  /** More about the event, in the form that its kind has. */
  eventDetails: optional(json, { since: "0.26.0" }),
};

/** One thing that happened to the account. */
export interface AuditLogEntry extends OpenValues<typeof auditLogEntry> {}
export const AuditLogEntry: OpenSchema<AuditLogEntry, typeof auditLogEntry> = openObject(
  "AuditLogEntry",
  auditLogEntry,
  { since: "0.20.0" },
);

const auditLogResponse = {
  /** What happened, in order. */
  entries: array(AuditLogEntry),
};

/** The audit log of one day. */
export interface AuditLogResponse extends OpenValues<typeof auditLogResponse> {}
export const AuditLogResponse: OpenSchema<AuditLogResponse, typeof auditLogResponse> = openObject(
  "AuditLogResponse",
  auditLogResponse,
  { since: "0.20.0" },
);

const whoamiResponse = {
  /** The user's name in the service. */
  userUrn: string,
  /** The user's address, where the credential has it. */
  email: optional(string),
};

/** Who is asking, read from the credential. */
export interface WhoamiResponse extends OpenValues<typeof whoamiResponse> {}
export const WhoamiResponse: OpenSchema<WhoamiResponse, typeof whoamiResponse> = openObject(
  "WhoamiResponse",
  whoamiResponse,
  { since: "0.23.2" },
);
