import {
  array,
  boolean,
  enumeration,
  integer,
  openEnumeration,
  openObject,
  optional,
  required,
  strictObject,
  string,
  union,
  withDefault,
  type FieldValues,
  type OpenSchema,
  type OpenValues,
  type SchemaOf,
  type ValueOf,
} from "../schema/schema.js";
import { SampleResponse } from "./sampling.js";
import {
  CreateModelResponse,
  ForwardBackwardOutput,
  OptimStepResponse,
  UnloadModelResponse,
} from "./training.js";
import {
  LoadWeightsResponse,
  SaveWeightsForSamplerResponseInternal,
  SaveWeightsResponse,
} from "./weights.js";

export const QueueState = openEnumeration([
  "active",
  "paused_capacity",
  "paused_rate_limit",
  "unknown",
]);
/** What a pending request is waiting for; newer servers may know more states. */
export type QueueState = ValueOf<typeof QueueState>;

export const RequestErrorCategory = enumeration(["unknown", "server", "user"], {
  fallback: "unknown",
  ignoreCase: true,
});
/** Who caused a failed request. */
export type RequestErrorCategory = ValueOf<typeof RequestErrorCategory>;

const untypedAPIFuture = {
  /** The id to poll with. */
  requestId: string,
  /** The model that the request is about, when it is about one. */
  modelId: optional(string),
  /** Ids of the sequences that a sample will have, in their order; null for every other request. */
  sampleSequenceIds: optional(array(string), { since: "0.26.0" }),
};

/** The receipt of a request that the server works on: poll `retrieve_future` with its id. */
export interface UntypedAPIFuture extends OpenValues<typeof untypedAPIFuture> {}
export const UntypedAPIFuture: OpenSchema<UntypedAPIFuture, typeof untypedAPIFuture> = openObject(
  "UntypedAPIFuture",
  untypedAPIFuture,
);

const futureRetrieveRequest = {
  /** The id from the receipt. */
  requestId: string,
  /**
   * Lets the server answer with the size of a large result first, so that the client can make room for it.
   * @default false
   */
  allowMetadataOnly: withDefault(boolean, false, { since: "0.14.0" }),
};

/** One poll for the result of a request. */
export interface FutureRetrieveRequest extends FieldValues<typeof futureRetrieveRequest> {}
export const FutureRetrieveRequest: SchemaOf<FutureRetrieveRequest, typeof futureRetrieveRequest> =
  strictObject("FutureRetrieveRequest", futureRetrieveRequest);

const tryAgainResponse = {
  /** Marks this answer. */
  type: required(enumeration(["try_again"]), {}),
  /** The id that was polled, where the server repeats it. */
  requestId: optional(string),
  /**
   * What the request is waiting for.
   * @default "unknown"
   */
  queueState: withDefault(QueueState, "unknown"),
  /** The server's words for why it waits. */
  queueStateReason: optional(string, { since: "0.7.0" }),
};

/** The result is not there yet: poll again. */
export interface TryAgainResponse extends OpenValues<typeof tryAgainResponse> {}
export const TryAgainResponse: OpenSchema<TryAgainResponse, typeof tryAgainResponse> = openObject(
  "TryAgainResponse",
  tryAgainResponse,
);

const completeMetadataResponse = {
  /** Marks this answer. */
  status: required(enumeration(["complete_metadata"]), {}),
  /**
   * Size of the result in bytes.
   * @default 0
   */
  responsePayloadSize: withDefault(integer, 0),
};

/** The result is there and large: ask again without `allowMetadataOnly` to get it. */
export interface CompleteMetadataResponse extends OpenValues<typeof completeMetadataResponse> {}
export const CompleteMetadataResponse: OpenSchema<
  CompleteMetadataResponse,
  typeof completeMetadataResponse
> = openObject("CompleteMetadataResponse", completeMetadataResponse, { since: "0.14.0" });

const requestFailedResponse = {
  /** The server's words. */
  error: string,
  /** Who caused the failure. */
  category: RequestErrorCategory,
};

/** The request was worked on and failed. */
export interface RequestFailedResponse extends OpenValues<typeof requestFailedResponse> {}
export const RequestFailedResponse: OpenSchema<
  RequestFailedResponse,
  typeof requestFailedResponse
> = openObject("RequestFailedResponse", requestFailedResponse);

/** Results by the text in their `type` field. */
const resultTypes = new Map([
  ["create_model", "CreateModelResponse"],
  ["unload_model", "UnloadModelResponse"],
  ["save_weights", "SaveWeightsResponse"],
  ["save_weights_for_sampler", "SaveWeightsForSamplerResponseInternal"],
  ["load_weights", "LoadWeightsResponse"],
  ["sample", "SampleResponse"],
]);

function chooseAnswer(has: (name: string) => boolean, get: (name: string) => unknown): string {
  if (get("type") === "try_again") return "TryAgainResponse";
  if (get("status") === "complete_metadata") return "CompleteMetadataResponse";
  if (has("error")) return "RequestFailedResponse";
  if (has("lossFnOutputs")) return "ForwardBackwardOutput";
  if (has("sequences")) return "SampleResponse";
  const type = get("type");
  return (typeof type === "string" ? resultTypes.get(type) : undefined) ?? "OptimStepResponse";
}

export const FutureRetrieveResponse = union(
  "FutureRetrieveResponse",
  {
    TryAgainResponse,
    CompleteMetadataResponse,
    RequestFailedResponse,
    ForwardBackwardOutput,
    OptimStepResponse,
    SaveWeightsResponse,
    SaveWeightsForSamplerResponseInternal,
    LoadWeightsResponse,
    CreateModelResponse,
    UnloadModelResponse,
    SampleResponse,
  },
  {
    choose: (value) => chooseByFields(value, (name) => name),
    chooseWire: (json) => chooseByFields(json, (name) => answerFieldWireNames[name] ?? name),
  },
);
/** The union of everything a poll can answer; there is no envelope around it. */
export type FutureRetrieveResponse = ValueOf<typeof FutureRetrieveResponse>;

const answerFieldWireNames: Readonly<Record<string, string>> = { lossFnOutputs: "loss_fn_outputs" };

function chooseByFields(value: unknown, rename: (name: string) => string): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const fields = value as Readonly<Record<string, unknown>>;
  return chooseAnswer(
    (name) => Object.hasOwn(fields, rename(name)),
    (name) => fields[rename(name)],
  );
}
