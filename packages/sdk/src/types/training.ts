import {
  array,
  bigInteger,
  boolean,
  enumeration,
  integer,
  json,
  literal,
  measured,
  number,
  openObject,
  optional,
  record,
  strictObject,
  string,
  withDefault,
  type FieldInputs,
  type FieldValues,
  type OpenSchema,
  type OpenValues,
  type Schema,
  type SchemaOf,
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

const loraConfig = {
  /** Rank of the adapter's matrices, at least 1: how much it can learn, and its size. */
  rank: integer,
  /** Makes the first weights repeatable; null draws them anew. */
  seed: optional(bigInteger),
  /**
   * Whether the output layer is adapted.
   * @default true
   */
  trainUnembed: withDefault(boolean, true),
  /**
   * Whether the feed-forward layers are adapted.
   * @default true
   */
  trainMlp: withDefault(boolean, true),
  /**
   * Whether the attention layers are adapted.
   * @default true
   */
  trainAttn: withDefault(boolean, true),
};

/** The shape of a LoRA adapter, and which parts of the model it changes. */
export interface LoraConfig extends FieldValues<typeof loraConfig> {}

/** The shape of a LoRA adapter, as it may be written: what is left out has its default. */
export interface LoraConfigInput extends FieldInputs<typeof loraConfig> {}
export const LoraConfig: Schema<LoraConfig, LoraConfigInput> = strictObject(
  "LoraConfig",
  loraConfig,
);

const optimizerConfig = {
  /** The family: `adamw`, or another one where the server offers it. */
  type: string,
};

/** The optimizer of a model, by its family; families may have settings of their own. */
export interface OptimizerConfig extends OpenValues<typeof optimizerConfig> {}
export const OptimizerConfig: OpenSchema<OptimizerConfig, typeof optimizerConfig> = openObject(
  "OptimizerConfig",
  optimizerConfig,
  { since: "0.29.0" },
);

const createModelRequest = {
  /** The session it belongs to. */
  sessionId: string,
  /** Number within the session; the same number twice is the same model. */
  modelSeqId: integer,
  /** The model to start from. */
  baseModel: string,
  /** Facts about the run, kept with it. */
  userMetadata: optional(record(json)),
  /** The adapter to train. */
  loraConfig: optional(LoraConfig),
  /** The optimizer; null is AdamW. */
  optimizerConfig: optional(OptimizerConfig, { since: "0.29.0" }),
  /** Marks the request. */
  type: literal("create_model"),
};

/** Makes a model to train. */
export interface CreateModelRequest extends FieldValues<typeof createModelRequest> {}
export const CreateModelRequest: SchemaOf<CreateModelRequest, typeof createModelRequest> =
  strictObject("CreateModelRequest", createModelRequest);

const createModelResponse = {
  /** Id of the model; also the id of its training run. */
  modelId: string,
  /** Marks the answer. */
  type: literal("create_model"),
};

/** A model was made. */
export interface CreateModelResponse extends OpenValues<typeof createModelResponse> {}
export const CreateModelResponse: OpenSchema<CreateModelResponse, typeof createModelResponse> =
  openObject("CreateModelResponse", createModelResponse);

const getInfoRequest = {
  /** Id of the model. */
  modelId: string,
  /** Marks the request. */
  type: literal("get_info"),
};

/** Asks for the description of a model. */
export interface GetInfoRequest extends FieldValues<typeof getInfoRequest> {}
export const GetInfoRequest: SchemaOf<GetInfoRequest, typeof getInfoRequest> = strictObject(
  "GetInfoRequest",
  getInfoRequest,
);

const modelData = {
  /** Architecture, by the server's name for it. */
  arch: optional(string),
  /** Name of the base model. */
  modelName: optional(string),
  /** Hub id of the tokenizer. */
  tokenizerId: optional(string),
};

/** What a model is made of. */
export interface ModelData extends OpenValues<typeof modelData> {}
export const ModelData: OpenSchema<ModelData, typeof modelData> = openObject(
  "ModelData",
  modelData,
);

const getInfoResponse = {
  /** Marks the answer. */
  type: optional(literal("get_info")),
  /** What it is made of. */
  modelData: ModelData,
  /** Id of the model. */
  modelId: string,
  /** Whether an adapter is trained rather than all weights. */
  isLora: optional(boolean),
  /** Rank of the adapter. */
  loraRank: optional(integer),
  /** Name of the base model. */
  modelName: optional(string),
};

/** The description of a model. */
export interface GetInfoResponse extends OpenValues<typeof getInfoResponse> {}
export const GetInfoResponse: OpenSchema<GetInfoResponse, typeof getInfoResponse> = openObject(
  "GetInfoResponse",
  getInfoResponse,
);

const unloadModelRequest = {
  /** Id of the model. */
  modelId: string,
  /** Marks the request. */
  type: literal("unload_model"),
};

/** Frees a model; its checkpoints stay. */
export interface UnloadModelRequest extends FieldValues<typeof unloadModelRequest> {}
export const UnloadModelRequest: SchemaOf<UnloadModelRequest, typeof unloadModelRequest> =
  strictObject("UnloadModelRequest", unloadModelRequest);

const unloadModelResponse = {
  /** Id of the model. */
  modelId: string,
  /** Marks the answer. */
  type: optional(literal("unload_model")),
};

/** A model was freed. */
export interface UnloadModelResponse extends OpenValues<typeof unloadModelResponse> {}
export const UnloadModelResponse: OpenSchema<UnloadModelResponse, typeof unloadModelResponse> =
  openObject("UnloadModelResponse", unloadModelResponse);

/** JSON carries numbers only; protobuf carries texts too. */
const lossSetting = number as Schema<number | string>;

const forwardBackwardInput = {
  /** The examples. */
  data: array(DatumSchema),
  /** The loss, summed over all tokens of all examples. */
  lossFn: LossFnType,
  /** Settings of the loss, by the loss's own names: numbers, or texts where the loss takes them. */
  lossFnConfig: optional(record(lossSetting)),
};

/** The data of a pass and the loss over them. */
export interface ForwardBackwardInput extends FieldValues<typeof forwardBackwardInput> {}
export const ForwardBackwardInput: SchemaOf<ForwardBackwardInput, typeof forwardBackwardInput> =
  strictObject("ForwardBackwardInput", forwardBackwardInput);

const forwardBackwardRequest = {
  /** The data and the loss. */
  forwardBackwardInput: ForwardBackwardInput,
  /** Id of the model. */
  modelId: string,
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: optional(integer),
  /**
   * Computes the loss without gradients.
   * @default false
   */
  forwardOnly: withDefault(boolean, false, {
    since: "0.22.3",
    protobufOnly: true,
  }),
};

/** A pass that adds gradients. */
export interface ForwardBackwardRequest extends FieldValues<typeof forwardBackwardRequest> {}
export const ForwardBackwardRequest: SchemaOf<
  ForwardBackwardRequest,
  typeof forwardBackwardRequest
> = strictObject("ForwardBackwardRequest", forwardBackwardRequest);

const forwardRequest = {
  /** The data and the loss. */
  forwardInput: ForwardBackwardInput,
  /** Id of the model. */
  modelId: string,
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: optional(integer),
};

/** A pass without gradients. */
export interface ForwardRequest extends FieldValues<typeof forwardRequest> {}
export const ForwardRequest: SchemaOf<ForwardRequest, typeof forwardRequest> = strictObject(
  "ForwardRequest",
  forwardRequest,
);

export const LossFnOutput = LossFnInputs;
/** What a loss returns for one datum: tensors by name, `logprobs` among them. */
export type LossFnOutput = ValueOf<typeof LossFnOutput>;

const forwardBackwardOutput = {
  /** The server's name for the form of `lossFnOutputs`. */
  lossFnOutputType: string,
  /** What the loss returned for each datum, in their order; `logprobs` of the targets among it. */
  lossFnOutputs: measured(array(LossFnOutput)),
  /**
   * Figures of the whole pass by `name:reduction`: `loss:sum` is the loss over all tokens of all data.
   * @default {}
   */
  metrics: withDefault(measured(record(number)), {}),
};

/** The result of a pass. */
export interface ForwardBackwardOutput extends OpenValues<typeof forwardBackwardOutput> {}
export const ForwardBackwardOutput: OpenSchema<
  ForwardBackwardOutput,
  typeof forwardBackwardOutput
> = openObject("ForwardBackwardOutput", forwardBackwardOutput);

const adamParams = {
  /**
   * How far a step goes. Adapters want about ten times what full fine-tuning takes.
   * @default 0.0001
   */
  learningRate: withDefault(number, 0.0001),
  /**
   * Decay of the running mean of gradients, at least 0 and below 1.
   * @default 0.9
   */
  beta1: withDefault(number, 0.9),
  /**
   * Decay of the running mean of squared gradients, at least 0 and below 1.
   * @default 0.95
   */
  beta2: withDefault(number, 0.95),
  /**
   * Added to the divisor, so that it is never 0.
   * @default 1e-12
   */
  eps: withDefault(number, 1e-12),
  /**
   * Decoupled weight decay: each step shrinks the weights by this times the learning rate.
   * @default 0
   */
  weightDecay: withDefault(number, 0, { since: "0.7.0" }),
  /**
   * Scales gradients down to this global norm when theirs is larger; 0 never does.
   * @default 0
   */
  gradClipNorm: withDefault(number, 0, { since: "0.7.0" }),
};

/** Settings of one AdamW step. */
export interface AdamParams extends FieldValues<typeof adamParams> {}

/** Settings of one AdamW step, as they may be written: what is left out has its default. */
export interface AdamParamsInput extends FieldInputs<typeof adamParams> {}
export const AdamParams: Schema<AdamParams, AdamParamsInput> = strictObject(
  "AdamParams",
  adamParams,
);

const optimizerParams = {
  /** The family. */
  type: string,
};

/** Settings of one step of another optimizer than AdamW, under the names of its family. */
export interface OptimizerParams extends OpenValues<typeof optimizerParams> {}
export const OptimizerParams: OpenSchema<OptimizerParams, typeof optimizerParams> = openObject(
  "OptimizerParams",
  optimizerParams,
  { since: "0.29.0" },
);

const optimStepRequest = {
  /** Settings of the step; null when `optimizerParams` has them. */
  adamParams: optional(AdamParams, { requiredUnless: "optimizer_params" }),
  /** Settings of the step of another optimizer. */
  optimizerParams: optional(OptimizerParams, { since: "0.29.0" }),
  /** Id of the model. */
  modelId: string,
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: optional(integer),
  /** Marks the request. */
  type: literal("optim_step"),
};

/** Changes the weights by the gradients added so far. */
export interface OptimStepRequest extends FieldValues<typeof optimStepRequest> {}
export const OptimStepRequest: SchemaOf<OptimStepRequest, typeof optimStepRequest> = strictObject(
  "OptimStepRequest",
  optimStepRequest,
);

const optimStepResponse = {
  /** Figures of the step by name, such as the norm of the gradients; null where the server has none. */
  metrics: optional(measured(record(number))),
};

/** A step was made. */
export interface OptimStepResponse extends OpenValues<typeof optimStepResponse> {}
export const OptimStepResponse: OpenSchema<OptimStepResponse, typeof optimStepResponse> =
  openObject("OptimStepResponse", optimStepResponse);
