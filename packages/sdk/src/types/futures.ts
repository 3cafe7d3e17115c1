import {
  boolean,
  enumeration,
  integer,
  openObject,
  optional,
  required,
  strictObject,
  string,
  union,
  withDefault,
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

export const QueueState = enumeration(
  ["active", "paused_capacity", "paused_rate_limit", "unknown"],
  {
    fallback: "unknown",
  },
);
/** What a pending request is waiting for. */
export type QueueState = ValueOf<typeof QueueState>;

export const RequestErrorCategory = enumeration(["unknown", "server", "user"], {
  fallback: "unknown",
  ignoreCase: true,
});
export type RequestErrorCategory = ValueOf<typeof RequestErrorCategory>;

export const UntypedAPIFuture = openObject("UntypedAPIFuture", {
  requestId: string,
  modelId: optional(string),
});
export type UntypedAPIFuture = ValueOf<typeof UntypedAPIFuture>;

export const FutureRetrieveRequest = strictObject("FutureRetrieveRequest", {
  requestId: string,
  allowMetadataOnly: withDefault(boolean, false, { since: "0.14.0" }),
});
export type FutureRetrieveRequest = ValueOf<typeof FutureRetrieveRequest>;

export const TryAgainResponse = openObject("TryAgainResponse", {
  type: required(enumeration(["try_again"]), {}),
  requestId: string,
  queueState: QueueState,
  queueStateReason: optional(string, { since: "0.7.0" }),
});
export type TryAgainResponse = ValueOf<typeof TryAgainResponse>;

export const CompleteMetadataResponse = openObject(
  "CompleteMetadataResponse",
  {
    status: required(enumeration(["complete_metadata"]), {}),
    responsePayloadSize: withDefault(integer, 0),
  },
  { since: "0.14.0" },
);
export type CompleteMetadataResponse = ValueOf<typeof CompleteMetadataResponse>;

export const RequestFailedResponse = openObject("RequestFailedResponse", {
  error: string,
  category: RequestErrorCategory,
});
export type RequestFailedResponse = ValueOf<typeof RequestFailedResponse>;

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
