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
  type ValueOf,
} from "../schema/schema.js";

export const SaveWeightsRequest = strictObject("SaveWeightsRequest", {
  modelId: string,
  path: optional(string),
  seqId: optional(integer),
  ttlSeconds: optional(integer, { since: "0.9.0" }),
  overwrite: withDefault(boolean, false, { since: "0.20.0" }),
  type: literal("save_weights"),
});
export type SaveWeightsRequest = ValueOf<typeof SaveWeightsRequest>;

export const SaveWeightsResponse = openObject("SaveWeightsResponse", {
  path: string,
  type: optional(literal("save_weights")),
});
export type SaveWeightsResponse = ValueOf<typeof SaveWeightsResponse>;

export const SaveWeightsForSamplerRequest = strictObject("SaveWeightsForSamplerRequest", {
  modelId: string,
  path: optional(string),
  samplingSessionSeqId: optional(integer),
  seqId: optional(integer),
  ttlSeconds: optional(integer, { since: "0.9.0" }),
  type: literal("save_weights_for_sampler"),
});
export type SaveWeightsForSamplerRequest = ValueOf<typeof SaveWeightsForSamplerRequest>;

export const SaveWeightsForSamplerResponseInternal = openObject(
  "SaveWeightsForSamplerResponseInternal",
  {
    path: optional(string),
    samplingSessionId: optional(string),
    type: optional(literal("save_weights_for_sampler")),
  },
);
export type SaveWeightsForSamplerResponseInternal = ValueOf<
  typeof SaveWeightsForSamplerResponseInternal
>;

export const SaveWeightsForSamplerResponse = openObject("SaveWeightsForSamplerResponse", {
  path: string,
  type: optional(literal("save_weights_for_sampler")),
});
export type SaveWeightsForSamplerResponse = ValueOf<typeof SaveWeightsForSamplerResponse>;

export const LoadWeightsRequest = strictObject("LoadWeightsRequest", {
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
});
export type LoadWeightsRequest = ValueOf<typeof LoadWeightsRequest>;

export const LoadWeightsResponse = openObject("LoadWeightsResponse", {
  path: optional(string),
  modelId: optional(string, { since: "0.24.1" }),
  type: optional(literal("load_weights")),
});
export type LoadWeightsResponse = ValueOf<typeof LoadWeightsResponse>;

export const WeightsInfoRequest = strictObject(
  "WeightsInfoRequest",
  { tinkerPath: string },
  { since: "0.5.1" },
);
export type WeightsInfoRequest = ValueOf<typeof WeightsInfoRequest>;

export const WeightsInfoResponse = openObject(
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
);
export type WeightsInfoResponse = ValueOf<typeof WeightsInfoResponse>;

export const CheckpointArchiveUrlResponse = openObject("CheckpointArchiveUrlResponse", {
  url: string,
  expires: timestamp,
});
export type CheckpointArchiveUrlResponse = ValueOf<typeof CheckpointArchiveUrlResponse>;

export const SetCheckpointTtlRequest = strictObject(
  "SetCheckpointTtlRequest",
  { ttlSeconds: required(nullable(integer), { note: "null is sent; it removes the expiry" }) },
  { since: "0.13.0" },
);
export type SetCheckpointTtlRequest = ValueOf<typeof SetCheckpointTtlRequest>;
