import {
  array,
  bigInteger,
  boolean,
  enumeration,
  integer,
  json,
  literal,
  number,
  openObject,
  optional,
  record,
  strictObject,
  string,
  withDefault,
  type InputOf,
  type ValueOf,
} from "../schema/schema.js";
import { DatumSchema, LossFnInputs } from "./datum.js";

export const LossFnType = enumeration([
  "cross_entropy",
  "importance_sampling",
  "ppo",
  "cispo",
  "dro",
]);
/** Losses the service computes itself. */
export type LossFnType = ValueOf<typeof LossFnType>;

export const LoraConfig = strictObject("LoraConfig", {
  rank: integer,
  seed: optional(bigInteger),
  trainUnembed: withDefault(boolean, true),
  trainMlp: withDefault(boolean, true),
  trainAttn: withDefault(boolean, true),
});
export type LoraConfig = ValueOf<typeof LoraConfig>;
export type LoraConfigInput = InputOf<typeof LoraConfig>;

export const CreateModelRequest = strictObject("CreateModelRequest", {
  sessionId: string,
  modelSeqId: integer,
  baseModel: string,
  userMetadata: optional(record(json)),
  loraConfig: optional(LoraConfig),
  type: literal("create_model"),
});
export type CreateModelRequest = ValueOf<typeof CreateModelRequest>;

export const CreateModelResponse = openObject("CreateModelResponse", {
  modelId: string,
  type: literal("create_model"),
});
export type CreateModelResponse = ValueOf<typeof CreateModelResponse>;

export const GetInfoRequest = strictObject("GetInfoRequest", {
  modelId: string,
  type: literal("get_info"),
});
export type GetInfoRequest = ValueOf<typeof GetInfoRequest>;

export const ModelData = openObject("ModelData", {
  arch: optional(string),
  modelName: optional(string),
  tokenizerId: optional(string),
});
export type ModelData = ValueOf<typeof ModelData>;

export const GetInfoResponse = openObject("GetInfoResponse", {
  type: optional(literal("get_info")),
  modelData: ModelData,
  modelId: string,
  isLora: optional(boolean),
  loraRank: optional(integer),
  modelName: optional(string),
});
export type GetInfoResponse = ValueOf<typeof GetInfoResponse>;

export const UnloadModelRequest = strictObject("UnloadModelRequest", {
  modelId: string,
  type: literal("unload_model"),
});
export type UnloadModelRequest = ValueOf<typeof UnloadModelRequest>;

export const UnloadModelResponse = openObject("UnloadModelResponse", {
  modelId: string,
  type: optional(literal("unload_model")),
});
export type UnloadModelResponse = ValueOf<typeof UnloadModelResponse>;

export const ForwardBackwardInput = strictObject("ForwardBackwardInput", {
  data: array(DatumSchema),
  lossFn: LossFnType,
  lossFnConfig: optional(record(number)),
});
export type ForwardBackwardInput = ValueOf<typeof ForwardBackwardInput>;

export const ForwardBackwardRequest = strictObject("ForwardBackwardRequest", {
  forwardBackwardInput: ForwardBackwardInput,
  modelId: string,
  seqId: optional(integer),
  forwardOnly: withDefault(boolean, false, {
    since: "0.22.3",
    protobufOnly: true,
    note: "protobuf only; in JSON a forward pass is a `ForwardRequest`",
  }),
});
export type ForwardBackwardRequest = ValueOf<typeof ForwardBackwardRequest>;

export const ForwardRequest = strictObject("ForwardRequest", {
  forwardInput: ForwardBackwardInput,
  modelId: string,
  seqId: optional(integer),
});
export type ForwardRequest = ValueOf<typeof ForwardRequest>;

export const LossFnOutput = LossFnInputs;
/** What a loss returns for one datum: tensors by name, `logprobs` among them. */
export type LossFnOutput = ValueOf<typeof LossFnOutput>;

export const ForwardBackwardOutput = openObject("ForwardBackwardOutput", {
  lossFnOutputType: string,
  lossFnOutputs: array(LossFnOutput),
  metrics: withDefault(record(number), {}),
});
export type ForwardBackwardOutput = ValueOf<typeof ForwardBackwardOutput>;

export const AdamParams = strictObject("AdamParams", {
  learningRate: withDefault(number, 0.0001),
  beta1: withDefault(number, 0.9),
  beta2: withDefault(number, 0.95),
  eps: withDefault(number, 1e-12),
  weightDecay: withDefault(number, 0, { since: "0.7.0" }),
  gradClipNorm: withDefault(number, 0, { since: "0.7.0" }),
});
export type AdamParams = ValueOf<typeof AdamParams>;
export type AdamParamsInput = InputOf<typeof AdamParams>;

export const OptimStepRequest = strictObject("OptimStepRequest", {
  adamParams: AdamParams,
  modelId: string,
  seqId: optional(integer),
  type: literal("optim_step"),
});
export type OptimStepRequest = ValueOf<typeof OptimStepRequest>;

export const OptimStepResponse = openObject("OptimStepResponse", {
  metrics: optional(record(number)),
});
export type OptimStepResponse = ValueOf<typeof OptimStepResponse>;
