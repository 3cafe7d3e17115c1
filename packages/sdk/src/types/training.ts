import {
  array,
  bigInteger,
  boolean,
  describedBy,
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
  type KeepsUnknownFields,
  type Omittable,
  type ValueOf,
} from "../schema/schema.js";
import { DatumSchema, LossFnInputs, type Datum } from "./datum.js";

export const LossFnType = enumeration([
  "cross_entropy",
  "importance_sampling",
  "ppo",
  "cispo",
  "dro",
]);
/** Losses the service computes itself. */
export type LossFnType = ValueOf<typeof LossFnType>;

/** The shape of a LoRA adapter, and which parts of the model it changes. */
export interface LoraConfig {
  /** Rank of the adapter's matrices, at least 1: how much it can learn, and its size. */
  rank: number;
  /** Makes the first weights repeatable; null draws them anew. */
  seed: number | bigint | null;
  /**
   * Whether the output layer is adapted.
   * @default true
   */
  trainUnembed: boolean;
  /**
   * Whether the feed-forward layers are adapted.
   * @default true
   */
  trainMlp: boolean;
  /**
   * Whether the attention layers are adapted.
   * @default true
   */
  trainAttn: boolean;
}

/** The shape of a LoRA adapter, as it may be written: what is left out has its default. */
export interface LoraConfigInput extends Omittable<LoraConfig, Exclude<keyof LoraConfig, "rank">> {}

export const LoraConfig = describedBy<LoraConfig, LoraConfigInput>()(
  strictObject("LoraConfig", {
    rank: integer,
    seed: optional(bigInteger),
    trainUnembed: withDefault(boolean, true),
    trainMlp: withDefault(boolean, true),
    trainAttn: withDefault(boolean, true),
  }),
);

/** Makes a model to train. */
export interface CreateModelRequest {
  /** The session it belongs to. */
  sessionId: string;
  /** Number within the session; the same number twice is the same model. */
  modelSeqId: number;
  /** The model to start from. */
  baseModel: string;
  /** Facts about the run, kept with it. */
  userMetadata: Record<string, unknown> | null;
  /** The adapter to train. */
  loraConfig: LoraConfig | null;
  /** Marks the request. */
  type: "create_model";
}

export const CreateModelRequest = describedBy<CreateModelRequest>()(
  strictObject("CreateModelRequest", {
    sessionId: string,
    modelSeqId: integer,
    baseModel: string,
    userMetadata: optional(record(json)),
    loraConfig: optional(LoraConfig),
    type: literal("create_model"),
  }),
);

/** A model was made. */
export interface CreateModelResponse extends KeepsUnknownFields {
  /** Id of the model; also the id of its training run. */
  modelId: string;
  /** Marks the answer. */
  type: "create_model";
}

export const CreateModelResponse = describedBy<CreateModelResponse>()(
  openObject("CreateModelResponse", {
    modelId: string,
    type: literal("create_model"),
  }),
);

/** Asks what the server knows about a model. */
export interface GetInfoRequest {
  /** Id of the model. */
  modelId: string;
  /** Marks the request. */
  type: "get_info";
}

export const GetInfoRequest = describedBy<GetInfoRequest>()(
  strictObject("GetInfoRequest", {
    modelId: string,
    type: literal("get_info"),
  }),
);

/** What a model is made of. */
export interface ModelData extends KeepsUnknownFields {
  /** Architecture, by the server's name for it. */
  arch: string | null;
  /** Name of the base model. */
  modelName: string | null;
  /** Hub id of the tokenizer. */
  tokenizerId: string | null;
}

export const ModelData = describedBy<ModelData>()(
  openObject("ModelData", {
    arch: optional(string),
    modelName: optional(string),
    tokenizerId: optional(string),
  }),
);

/** What the server knows about a model. */
export interface GetInfoResponse extends KeepsUnknownFields {
  /** Marks the answer. */
  type: "get_info" | null;
  /** What it is made of. */
  modelData: ModelData;
  /** Id of the model. */
  modelId: string;
  /** Whether an adapter is trained rather than all weights. */
  isLora: boolean | null;
  /** Rank of the adapter. */
  loraRank: number | null;
  /** Name of the base model. */
  modelName: string | null;
}

export const GetInfoResponse = describedBy<GetInfoResponse>()(
  openObject("GetInfoResponse", {
    type: optional(literal("get_info")),
    modelData: ModelData,
    modelId: string,
    isLora: optional(boolean),
    loraRank: optional(integer),
    modelName: optional(string),
  }),
);

/** Frees a model; its checkpoints stay. */
export interface UnloadModelRequest {
  /** Id of the model. */
  modelId: string;
  /** Marks the request. */
  type: "unload_model";
}

export const UnloadModelRequest = describedBy<UnloadModelRequest>()(
  strictObject("UnloadModelRequest", {
    modelId: string,
    type: literal("unload_model"),
  }),
);

/** A model was freed. */
export interface UnloadModelResponse extends KeepsUnknownFields {
  /** Id of the model. */
  modelId: string;
  /** Marks the answer. */
  type: "unload_model" | null;
}

export const UnloadModelResponse = describedBy<UnloadModelResponse>()(
  openObject("UnloadModelResponse", {
    modelId: string,
    type: optional(literal("unload_model")),
  }),
);

/** The data of a pass and the loss over them. */
export interface ForwardBackwardInput {
  /** The examples. */
  data: Datum[];
  /** The loss, summed over all tokens of all examples. */
  lossFn: LossFnType;
  /** Settings of the loss, by the loss's own names. */
  lossFnConfig: Record<string, number> | null;
}

export const ForwardBackwardInput = describedBy<ForwardBackwardInput>()(
  strictObject("ForwardBackwardInput", {
    data: array(DatumSchema),
    lossFn: LossFnType,
    lossFnConfig: optional(record(number)),
  }),
);

/** A pass that adds gradients. */
export interface ForwardBackwardRequest {
  /** The data and the loss. */
  forwardBackwardInput: ForwardBackwardInput;
  /** Id of the model. */
  modelId: string;
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: number | null;
  /**
   * Computes the loss without gradients.
   * @default false
   */
  forwardOnly: boolean;
}

export const ForwardBackwardRequest = describedBy<ForwardBackwardRequest>()(
  strictObject("ForwardBackwardRequest", {
    forwardBackwardInput: ForwardBackwardInput,
    modelId: string,
    seqId: optional(integer),
    forwardOnly: withDefault(boolean, false, {
      since: "0.22.3",
      protobufOnly: true,
      note: "protobuf only; in JSON a forward pass is a `ForwardRequest`",
    }),
  }),
);

/** A pass without gradients. */
export interface ForwardRequest {
  /** The data and the loss. */
  forwardInput: ForwardBackwardInput;
  /** Id of the model. */
  modelId: string;
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: number | null;
}

export const ForwardRequest = describedBy<ForwardRequest>()(
  strictObject("ForwardRequest", {
    forwardInput: ForwardBackwardInput,
    modelId: string,
    seqId: optional(integer),
  }),
);

export const LossFnOutput = LossFnInputs;
/** What a loss returns for one datum: tensors by name, `logprobs` among them. */
export type LossFnOutput = ValueOf<typeof LossFnOutput>;

/** The result of a pass. */
export interface ForwardBackwardOutput extends KeepsUnknownFields {
  /** The server's name for the form of `lossFnOutputs`. */
  lossFnOutputType: string;
  /** What the loss returned for each datum, in their order; `logprobs` of the targets among it. */
  lossFnOutputs: LossFnOutput[];
  /**
   * Figures of the whole pass by `name:reduction`: `loss:sum` is the loss over all tokens of all data.
   * @default {}
   */
  metrics: Record<string, number>;
}

export const ForwardBackwardOutput = describedBy<ForwardBackwardOutput>()(
  openObject("ForwardBackwardOutput", {
    lossFnOutputType: string,
    lossFnOutputs: measured(array(LossFnOutput)),
    metrics: withDefault(measured(record(number)), {}),
  }),
);

/** Settings of one AdamW step. */
export interface AdamParams {
  /**
   * How far a step goes. Adapters want about ten times what full fine-tuning takes.
   * @default 0.0001
   */
  learningRate: number;
  /**
   * Decay of the running mean of gradients, at least 0 and below 1.
   * @default 0.9
   */
  beta1: number;
  /**
   * Decay of the running mean of squared gradients, at least 0 and below 1.
   * @default 0.95
   */
  beta2: number;
  /**
   * Added to the divisor, so that it is never 0.
   * @default 1e-12
   */
  eps: number;
  /**
   * Decoupled weight decay: each step shrinks the weights by this times the learning rate.
   * @default 0
   */
  weightDecay: number;
  /**
   * Scales gradients down to this global norm when theirs is larger; 0 never does.
   * @default 0
   */
  gradClipNorm: number;
}

/** Settings of one AdamW step, as they may be written: what is left out has its default. */
export interface AdamParamsInput extends Omittable<AdamParams> {}

export const AdamParams = describedBy<AdamParams, AdamParamsInput>()(
  strictObject("AdamParams", {
    learningRate: withDefault(number, 0.0001),
    beta1: withDefault(number, 0.9),
    beta2: withDefault(number, 0.95),
    eps: withDefault(number, 1e-12),
    weightDecay: withDefault(number, 0, { since: "0.7.0" }),
    gradClipNorm: withDefault(number, 0, { since: "0.7.0" }),
  }),
);

/** Changes the weights by the gradients added so far. */
export interface OptimStepRequest {
  /** Settings of the step. */
  adamParams: AdamParams;
  /** Id of the model. */
  modelId: string;
  /** Place in the model's order of requests, from 1; a gap waits. */
  seqId: number | null;
  /** Marks the request. */
  type: "optim_step";
}

export const OptimStepRequest = describedBy<OptimStepRequest>()(
  strictObject("OptimStepRequest", {
    adamParams: AdamParams,
    modelId: string,
    seqId: optional(integer),
    type: literal("optim_step"),
  }),
);

/** A step was made. */
export interface OptimStepResponse extends KeepsUnknownFields {
  /** Figures of the step by name, such as the norm of the gradients; null where the server has none. */
  metrics: Record<string, number> | null;
}

export const OptimStepResponse = describedBy<OptimStepResponse>()(
  openObject("OptimStepResponse", {
    metrics: optional(measured(record(number))),
  }),
);
