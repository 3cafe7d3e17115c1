import {
  boolean,
  describedBy,
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
  type KeepsUnknownFields,
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
/** Whose fault a failed request is. */
export type RequestErrorCategory = ValueOf<typeof RequestErrorCategory>;

/** The receipt of a request that the server works on: poll `retrieve_future` with its id. */
export interface UntypedAPIFuture extends KeepsUnknownFields {
  /** The id to poll with. */
  requestId: string;
  /** The model that the request is about, when it is about one. */
  modelId: string | null;
}

export const UntypedAPIFuture = describedBy<UntypedAPIFuture>()(
  openObject("UntypedAPIFuture", {
    requestId: string,
    modelId: optional(string),
  }),
);

/** One poll for the result of a request. */
export interface FutureRetrieveRequest {
  /** The id from the receipt. */
  requestId: string;
  /**
   * Lets the server answer with the size of a large result first, so that the client can make room for it.
   * @default false
   */
  allowMetadataOnly: boolean;
}

export const FutureRetrieveRequest = describedBy<FutureRetrieveRequest>()(
  strictObject("FutureRetrieveRequest", {
    requestId: string,
    allowMetadataOnly: withDefault(boolean, false, { since: "0.14.0" }),
  }),
);

/** The result is not there yet: poll again. */
export interface TryAgainResponse extends KeepsUnknownFields {
  /** Marks this answer. */
  type: "try_again";
  /** The id that was polled, where the server repeats it. */
  requestId: string | null;
  /**
   * What the request is waiting for.
   * @default "unknown"
   */
  queueState: QueueState;
  /** The server's words for why it waits. */
  queueStateReason: string | null;
}

export const TryAgainResponse = describedBy<TryAgainResponse>()(
  openObject("TryAgainResponse", {
    type: required(enumeration(["try_again"]), {}),
    requestId: optional(string),
    queueState: withDefault(QueueState, "unknown"),
    queueStateReason: optional(string, { since: "0.7.0" }),
  }),
);

/** The result is there and large: ask again without `allowMetadataOnly` to get it. */
export interface CompleteMetadataResponse extends KeepsUnknownFields {
  /** Marks this answer. */
  status: "complete_metadata";
  /**
   * Size of the result in bytes.
   * @default 0
   */
  responsePayloadSize: number;
}

export const CompleteMetadataResponse = describedBy<CompleteMetadataResponse>()(
  openObject(
    "CompleteMetadataResponse",
    {
      status: required(enumeration(["complete_metadata"]), {}),
      responsePayloadSize: withDefault(integer, 0),
    },
    { since: "0.14.0" },
  ),
);

/** The request was worked on and failed. */
export interface RequestFailedResponse extends KeepsUnknownFields {
  /** The server's words. */
  error: string;
  /** Whose mistake it was. */
  category: RequestErrorCategory;
}

export const RequestFailedResponse = describedBy<RequestFailedResponse>()(
  openObject("RequestFailedResponse", {
    error: string,
    category: RequestErrorCategory,
  }),
);

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
