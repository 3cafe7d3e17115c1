import {
  boolean,
  integer,
  json,
  literal,
  nullable,
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
} from "../schema/schema.js";
import { OptimizerConfig } from "./training.js";

const saveWeightsRequest = {
  /** Id of the model. */
  modelId: string,
  /** Name of the checkpoint within the run. */
  path: optional(string),
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: optional(integer),
  /** Seconds until the checkpoint is deleted; null keeps it. */
  ttlSeconds: optional(integer, { since: "0.9.0" }),
  /**
   * Replaces a checkpoint of the same name.
   * @default false
   */
  overwrite: withDefault(boolean, false, { since: "0.20.0" }),
  /** Facts about the checkpoint, kept with it. */
  userMetadata: optional(record(string), { since: "0.28.0" }),
  /** Marks the request. */
  type: literal("save_weights"),
};

/** Saves weights and optimizer state. */
export interface SaveWeightsRequest extends FieldValues<typeof saveWeightsRequest> {}
export const SaveWeightsRequest: SchemaOf<SaveWeightsRequest, typeof saveWeightsRequest> =
  strictObject("SaveWeightsRequest", saveWeightsRequest);

const saveWeightsResponse = {
  /** Its address, `tinker://<run>/weights/<name>`: what `loadState` takes. */
  path: string,
  /** Marks the answer. */
  type: optional(literal("save_weights")),
};

/** A checkpoint was saved. */
export interface SaveWeightsResponse extends OpenValues<typeof saveWeightsResponse> {}
export const SaveWeightsResponse: OpenSchema<SaveWeightsResponse, typeof saveWeightsResponse> =
  openObject("SaveWeightsResponse", saveWeightsResponse);

const saveWeightsForSamplerRequest = {
  /** Id of the model. */
  modelId: string,
  /** Name of the checkpoint within the run; null keeps it for a sampling session only. */
  path: optional(string),
  /** Number of the sampling session to open on it. */
  samplingSessionSeqId: optional(integer),
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: optional(integer),
  /** Seconds until the checkpoint is deleted; null keeps it. */
  ttlSeconds: optional(integer, { since: "0.9.0" }),
  /** Facts about the checkpoint, kept with it. */
  userMetadata: optional(record(string), { since: "0.28.0" }),
  /** Marks the request. */
  type: literal("save_weights_for_sampler"),
};

/** Saves weights to sample from. */
export interface SaveWeightsForSamplerRequest extends FieldValues<
  typeof saveWeightsForSamplerRequest
> {}
export const SaveWeightsForSamplerRequest: SchemaOf<
  SaveWeightsForSamplerRequest,
  typeof saveWeightsForSamplerRequest
> = strictObject("SaveWeightsForSamplerRequest", saveWeightsForSamplerRequest);

const saveWeightsForSamplerResponseInternal = {
  /** Their address; null when they have no name. */
  path: optional(string),
  /** The sampling session on them; null when none was asked for. */
  samplingSessionId: optional(string),
  /** Marks the answer. */
  type: optional(literal("save_weights_for_sampler")),
};

/** Sampler weights were saved, under a name or for a sampling session. */
export interface SaveWeightsForSamplerResponseInternal extends OpenValues<
  typeof saveWeightsForSamplerResponseInternal
> {}
export const SaveWeightsForSamplerResponseInternal: OpenSchema<
  SaveWeightsForSamplerResponseInternal,
  typeof saveWeightsForSamplerResponseInternal
> = openObject("SaveWeightsForSamplerResponseInternal", saveWeightsForSamplerResponseInternal);

const saveWeightsForSamplerResponse = {
  /** Their address, `tinker://<run>/sampler_weights/<name>`: what `createSamplingClient` takes. */
  path: string,
  /** Marks the answer. */
  type: optional(literal("save_weights_for_sampler")),
};

/** Sampler weights were saved under a name. */
export interface SaveWeightsForSamplerResponse extends OpenValues<
  typeof saveWeightsForSamplerResponse
> {}
export const SaveWeightsForSamplerResponse: OpenSchema<
  SaveWeightsForSamplerResponse,
  typeof saveWeightsForSamplerResponse
> = openObject("SaveWeightsForSamplerResponse", saveWeightsForSamplerResponse);

const saveWeightsExternalResponse = {
  /** Their address, `tinker://<run>/external_weights/<name>`. */
  path: string,
  /** Size in bytes, where the server reports it. */
  sizeBytes: optional(integer),
};

/** Weights were saved as files for use elsewhere. */
export interface SaveWeightsExternalResponse extends OpenValues<
  typeof saveWeightsExternalResponse
> {}
export const SaveWeightsExternalResponse: OpenSchema<
  SaveWeightsExternalResponse,
  typeof saveWeightsExternalResponse
> = openObject("SaveWeightsExternalResponse", saveWeightsExternalResponse, { since: "0.28.0" });

const externalWeightsUrlsResponse = {
  /** Addresses by the names of the files; they need no key. */
  urls: record(string),
  /** Until when the addresses work. */
  expires: timestamp,
};

/** Where the files of external weights can be downloaded. */
export interface ExternalWeightsUrlsResponse extends OpenValues<
  typeof externalWeightsUrlsResponse
> {}
export const ExternalWeightsUrlsResponse: OpenSchema<
  ExternalWeightsUrlsResponse,
  typeof externalWeightsUrlsResponse
> = openObject("ExternalWeightsUrlsResponse", externalWeightsUrlsResponse, { since: "0.28.0" });

const loadWeightsRequest = {
  /** Id of the model to load into; null makes one. */
  modelId: optional(string),
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: optional(integer),
  /** The session that a new model belongs to. */
  sessionId: optional(string, { since: "0.24.1" }),
  /** Number of a new model within its session. */
  modelSeqId: optional(integer, { since: "0.24.1" }),
  /** The base model of a new model; optional when the checkpoint names it. */
  baseModel: optional(string, { since: "0.24.1" }),
  /** Facts about a new run, kept with it. */
  userMetadata: optional(record(json), { since: "0.24.1" }),
  /** Address of the checkpoint. */
  path: string,
  /** Whether the optimizer state is loaded too. */
  optimizer: required(boolean, { since: "0.5.1" }),
  /** The optimizer of a new model, when no optimizer state is loaded; null is AdamW. */
  optimizerConfig: optional(OptimizerConfig, { since: "0.29.0" }),
  /** A credential of the checkpoint's owner, when the caller is not the owner. */
  weightsAccessToken: optional(string, { since: "0.18.0" }),
  /** Marks the request. */
  type: literal("load_weights"),
};

/** Loads weights into a model, or makes a model from them. */
export interface LoadWeightsRequest extends FieldValues<typeof loadWeightsRequest> {}
export const LoadWeightsRequest: SchemaOf<LoadWeightsRequest, typeof loadWeightsRequest> =
  strictObject("LoadWeightsRequest", loadWeightsRequest);

const loadWeightsResponse = {
  /** Address of the checkpoint. */
  path: optional(string),
  /** Id of the model, when one was made. */
  modelId: optional(string, { since: "0.24.1" }),
  /** Marks the answer. */
  type: optional(literal("load_weights")),
};

/** Weights were loaded. */
export interface LoadWeightsResponse extends OpenValues<typeof loadWeightsResponse> {}
export const LoadWeightsResponse: OpenSchema<LoadWeightsResponse, typeof loadWeightsResponse> =
  openObject("LoadWeightsResponse", loadWeightsResponse);

const copyWeightsRequest = {
  /** The session that the copy belongs to. */
  sessionId: string,
  /** Number of the run within the session; the same number twice is the same copy. */
  modelSeqId: integer,
  /** Address of the checkpoint to copy. */
  sourcePath: string,
  /** Seconds until the copy is deleted; null keeps it, whatever becomes of the source. */
  ttlSeconds: optional(integer),
  /** A credential of the source's owner, when the caller is not the owner. */
  weightsAccessToken: optional(string),
};

/** Copies a checkpoint into a run of its own, which cannot be trained. */
export interface CopyWeightsRequest extends FieldValues<typeof copyWeightsRequest> {}
export const CopyWeightsRequest: SchemaOf<CopyWeightsRequest, typeof copyWeightsRequest> =
  strictObject("CopyWeightsRequest", copyWeightsRequest, { since: "0.26.0" });

const copyWeightsResponse = {
  /** Address of the copy. */
  tinkerPath: string,
};

/** A checkpoint was copied. */
export interface CopyWeightsResponse extends OpenValues<typeof copyWeightsResponse> {}
export const CopyWeightsResponse: OpenSchema<CopyWeightsResponse, typeof copyWeightsResponse> =
  openObject("CopyWeightsResponse", copyWeightsResponse, { since: "0.26.0" });

const weightsInfoRequest = {
  /** Address of the checkpoint. */
  tinkerPath: string,
};

/** Asks what a checkpoint was made from. */
export interface WeightsInfoRequest extends FieldValues<typeof weightsInfoRequest> {}
export const WeightsInfoRequest: SchemaOf<WeightsInfoRequest, typeof weightsInfoRequest> =
  strictObject("WeightsInfoRequest", weightsInfoRequest, { since: "0.5.1" });

const weightsInfoResponse = {
  /** The base model it was trained from. */
  baseModel: string,
  /** Whether it is an adapter rather than all weights. */
  isLora: boolean,
  /** Rank of the adapter. */
  loraRank: optional(integer),
  /** Whether the output layer was adapted. */
  trainUnembed: optional(boolean, { since: "0.8.0" }),
  /** Whether the feed-forward layers were adapted. */
  trainMlp: optional(boolean, { since: "0.8.0" }),
  /** Whether the attention layers were adapted. */
  trainAttn: optional(boolean, { since: "0.8.0" }),
  /** The optimizer of its state; null is AdamW. */
  optimizerConfig: optional(OptimizerConfig, { since: "0.29.0" }),
};

/** What is needed to load a checkpoint. */
export interface WeightsInfoResponse extends OpenValues<typeof weightsInfoResponse> {}
export const WeightsInfoResponse: OpenSchema<WeightsInfoResponse, typeof weightsInfoResponse> =
  openObject("WeightsInfoResponse", weightsInfoResponse, { since: "0.5.1" });

const checkpointArchiveUrlResponse = {
  /** Address of a tar.gz archive; needs no key. */
  url: string,
  /** Until when the address works. */
  expires: timestamp,
};

/** Where the files of a checkpoint can be downloaded. */
export interface CheckpointArchiveUrlResponse extends OpenValues<
  typeof checkpointArchiveUrlResponse
> {}
export const CheckpointArchiveUrlResponse: OpenSchema<
  CheckpointArchiveUrlResponse,
  typeof checkpointArchiveUrlResponse
> = openObject("CheckpointArchiveUrlResponse", checkpointArchiveUrlResponse);

const setCheckpointTtlRequest = {
  /** Seconds from now; null keeps it for good. */
  ttlSeconds: nullable(integer),
};

/** Changes when a checkpoint is deleted. */
export interface SetCheckpointTtlRequest extends FieldValues<typeof setCheckpointTtlRequest> {}
export const SetCheckpointTtlRequest: SchemaOf<
  SetCheckpointTtlRequest,
  typeof setCheckpointTtlRequest
> = strictObject("SetCheckpointTtlRequest", setCheckpointTtlRequest, { since: "0.13.0" });
