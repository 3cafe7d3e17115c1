import {
  boolean,
  describedBy,
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
  type KeepsUnknownFields,
} from "../schema/schema.js";
import type { Timestamp } from "../schema/timestamp.js";

/** Saves weights and optimizer state. */
export interface SaveWeightsRequest {
  /** Id of the model. */
  modelId: string;
  /** Name of the checkpoint within the run. */
  path: string | null;
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: number | null;
  /** Seconds until the checkpoint is deleted; null keeps it. */
  ttlSeconds: number | null;
  /**
   * Replaces a checkpoint of the same name.
   * @default false
   */
  overwrite: boolean;
  /** Marks the request. */
  type: "save_weights";
}

export const SaveWeightsRequest = describedBy<SaveWeightsRequest>()(
  strictObject("SaveWeightsRequest", {
    modelId: string,
    path: optional(string),
    seqId: optional(integer),
    ttlSeconds: optional(integer, { since: "0.9.0" }),
    overwrite: withDefault(boolean, false, { since: "0.20.0" }),
    type: literal("save_weights"),
  }),
);

/** A checkpoint was saved. */
export interface SaveWeightsResponse extends KeepsUnknownFields {
  /** Its address, `tinker://<run>/weights/<name>`: what `loadState` takes. */
  path: string;
  /** Marks the answer. */
  type: "save_weights" | null;
}

export const SaveWeightsResponse = describedBy<SaveWeightsResponse>()(
  openObject("SaveWeightsResponse", {
    path: string,
    type: optional(literal("save_weights")),
  }),
);

/** Saves weights to sample from. */
export interface SaveWeightsForSamplerRequest {
  /** Id of the model. */
  modelId: string;
  /** Name of the checkpoint within the run; null keeps it for a sampling session only. */
  path: string | null;
  /** Number of the sampling session to open on it. */
  samplingSessionSeqId: number | null;
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: number | null;
  /** Seconds until the checkpoint is deleted; null keeps it. */
  ttlSeconds: number | null;
  /** Marks the request. */
  type: "save_weights_for_sampler";
}

export const SaveWeightsForSamplerRequest = describedBy<SaveWeightsForSamplerRequest>()(
  strictObject("SaveWeightsForSamplerRequest", {
    modelId: string,
    path: optional(string),
    samplingSessionSeqId: optional(integer),
    seqId: optional(integer),
    ttlSeconds: optional(integer, { since: "0.9.0" }),
    type: literal("save_weights_for_sampler"),
  }),
);

/** Sampler weights were saved, under a name or for a sampling session. */
export interface SaveWeightsForSamplerResponseInternal extends KeepsUnknownFields {
  /** Their address; null when they have no name. */
  path: string | null;
  /** The sampling session on them; null when none was asked for. */
  samplingSessionId: string | null;
  /** Marks the answer. */
  type: "save_weights_for_sampler" | null;
}

export const SaveWeightsForSamplerResponseInternal =
  describedBy<SaveWeightsForSamplerResponseInternal>()(
    openObject("SaveWeightsForSamplerResponseInternal", {
      path: optional(string),
      samplingSessionId: optional(string),
      type: optional(literal("save_weights_for_sampler")),
    }),
  );

/** Sampler weights were saved under a name. */
export interface SaveWeightsForSamplerResponse extends KeepsUnknownFields {
  /** Their address, `tinker://<run>/sampler_weights/<name>`: what `createSamplingClient` takes. */
  path: string;
  /** Marks the answer. */
  type: "save_weights_for_sampler" | null;
}

export const SaveWeightsForSamplerResponse = describedBy<SaveWeightsForSamplerResponse>()(
  openObject("SaveWeightsForSamplerResponse", {
    path: string,
    type: optional(literal("save_weights_for_sampler")),
  }),
);

/** Loads weights into a model, or makes a model from them. */
export interface LoadWeightsRequest {
  /** Id of the model to load into; null makes one. */
  modelId: string | null;
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: number | null;
  /** The session that a new model belongs to. */
  sessionId: string | null;
  /** Number of a new model within its session. */
  modelSeqId: number | null;
  /** The base model of a new model; may be left out when the checkpoint says it. */
  baseModel: string | null;
  /** Facts about a new run, kept with it. */
  userMetadata: Record<string, unknown> | null;
  /** Address of the checkpoint. */
  path: string;
  /** Whether the optimizer state is loaded too. */
  optimizer: boolean;
  /** A credential of the checkpoint's owner, when that is somebody else. */
  weightsAccessToken: string | null;
  /** Marks the request. */
  type: "load_weights";
}

export const LoadWeightsRequest = describedBy<LoadWeightsRequest>()(
  strictObject("LoadWeightsRequest", {
    modelId: optional(string),
    seqId: optional(integer),
    sessionId: optional(string, { since: "0.24.1" }),
    modelSeqId: optional(integer, { since: "0.24.1" }),
    baseModel: optional(string, { since: "0.24.1" }),
    userMetadata: optional(record(json), { since: "0.24.1" }),
    path: string,
    optimizer: required(boolean, { since: "0.5.1" }),
    weightsAccessToken: optional(string, { since: "0.18.0" }),
    type: literal("load_weights"),
  }),
);

/** Weights were loaded. */
export interface LoadWeightsResponse extends KeepsUnknownFields {
  /** Address of the checkpoint. */
  path: string | null;
  /** Id of the model, when one was made. */
  modelId: string | null;
  /** Marks the answer. */
  type: "load_weights" | null;
}

export const LoadWeightsResponse = describedBy<LoadWeightsResponse>()(
  openObject("LoadWeightsResponse", {
    path: optional(string),
    modelId: optional(string, { since: "0.24.1" }),
    type: optional(literal("load_weights")),
  }),
);

/** Asks what a checkpoint was made from. */
export interface WeightsInfoRequest {
  /** Address of the checkpoint. */
  tinkerPath: string;
}

export const WeightsInfoRequest = describedBy<WeightsInfoRequest>()(
  strictObject("WeightsInfoRequest", { tinkerPath: string }, { since: "0.5.1" }),
);

/** What is needed to load a checkpoint. */
export interface WeightsInfoResponse extends KeepsUnknownFields {
  /** The base model it was trained from. */
  baseModel: string;
  /** Whether it is an adapter rather than all weights. */
  isLora: boolean;
  /** Rank of the adapter. */
  loraRank: number | null;
  /** Whether the output layer was adapted. */
  trainUnembed: boolean | null;
  /** Whether the feed-forward layers were adapted. */
  trainMlp: boolean | null;
  /** Whether the attention layers were adapted. */
  trainAttn: boolean | null;
}

export const WeightsInfoResponse = describedBy<WeightsInfoResponse>()(
  openObject(
    "WeightsInfoResponse",
    {
      baseModel: string,
      isLora: boolean,
      loraRank: optional(integer),
      trainUnembed: optional(boolean, { since: "0.8.0" }),
      trainMlp: optional(boolean, { since: "0.8.0" }),
      trainAttn: optional(boolean, { since: "0.8.0" }),
    },
    { since: "0.5.1" },
  ),
);

/** Where the files of a checkpoint can be downloaded. */
export interface CheckpointArchiveUrlResponse extends KeepsUnknownFields {
  /** Address of a tar.gz archive; needs no key. */
  url: string;
  /** Until when the address works. */
  expires: Timestamp;
}

export const CheckpointArchiveUrlResponse = describedBy<CheckpointArchiveUrlResponse>()(
  openObject("CheckpointArchiveUrlResponse", {
    url: string,
    expires: timestamp,
  }),
);

/** Changes when a checkpoint is deleted. */
export interface SetCheckpointTtlRequest {
  /** Seconds from now; null keeps it for good. */
  ttlSeconds: number | null;
}

export const SetCheckpointTtlRequest = describedBy<SetCheckpointTtlRequest>()(
  strictObject(
    "SetCheckpointTtlRequest",
    { ttlSeconds: required(nullable(integer), { note: "null is sent; it removes the expiry" }) },
    { since: "0.13.0" },
  ),
);
