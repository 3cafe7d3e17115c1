import {
  array,
  integer,
  literal,
  number,
  openEnumeration,
  openObject,
  optional,
  required,
  strictObject,
  string,
  withDefault,
  type FieldValues,
  type OpenSchema,
  type OpenValues,
  type SchemaOf,
} from "../schema/schema.js";

const cancelFutureRequest = {
  /** The id from the receipt. */
  requestId: string,
};

/** Cancels a sample. */
export interface CancelFutureRequest extends FieldValues<typeof cancelFutureRequest> {}
export const CancelFutureRequest: SchemaOf<CancelFutureRequest, typeof cancelFutureRequest> =
  strictObject("CancelFutureRequest", cancelFutureRequest, { since: "0.26.0" });

const joinSamplingSessionRequest = {
  /** The sampling session. */
  samplingSessionId: string,
  /** Marks the request. */
  type: literal("join_sampling_session"),
};

/** Joins a sampling session that another client has made. */
export interface JoinSamplingSessionRequest extends FieldValues<
  typeof joinSamplingSessionRequest
> {}
export const JoinSamplingSessionRequest: SchemaOf<
  JoinSamplingSessionRequest,
  typeof joinSamplingSessionRequest
> = strictObject("JoinSamplingSessionRequest", joinSamplingSessionRequest, {
  since: "0.32.0",
});

const joinSamplingSessionResponse = {
  /** Marks the answer. */
  type: literal("join_sampling_session"),
  /** Number of the client in the sampling session; who made it is 0. */
  clientCounter: integer,
};

/** A client has joined a sampling session. */
export interface JoinSamplingSessionResponse extends OpenValues<
  typeof joinSamplingSessionResponse
> {}
export const JoinSamplingSessionResponse: OpenSchema<
  JoinSamplingSessionResponse,
  typeof joinSamplingSessionResponse
> = openObject("JoinSamplingSessionResponse", joinSamplingSessionResponse, {
  since: "0.32.0",
});

const samplingSessionFuturesTarget = {
  /** Marks the target. */
  type: literal("sampling_session"),
  /** The sampling session. */
  samplingSessionId: string,
  /**
   * Number of the client: its samples are numbered from a thousand million times that.
   * @default 0
   */
  clonedSamplerId: withDefault(integer, 0),
};

/** One client of a sampling session, for polling all of its samples together. */
export interface SamplingSessionFuturesTarget extends FieldValues<
  typeof samplingSessionFuturesTarget
> {}
export const SamplingSessionFuturesTarget: SchemaOf<
  SamplingSessionFuturesTarget,
  typeof samplingSessionFuturesTarget
> = strictObject("SamplingSessionFuturesTarget", samplingSessionFuturesTarget, {
  since: "0.26.0",
});

const futuresRetrieveRequest = {
  /** The sampling session to poll. */
  target: SamplingSessionFuturesTarget,
  /**
   * The cursor of the last answer: what was reported up to there has been seen. 0 asks for everything.
   * @default 0
   */
  prevCursor: withDefault(integer, 0),
  /** Longest time in seconds for which the answer is held back. */
  timeout: optional(number),
};

/** One poll for all samples of a client that have finished. */
export interface FuturesRetrieveRequest extends FieldValues<typeof futuresRetrieveRequest> {}
export const FuturesRetrieveRequest: SchemaOf<
  FuturesRetrieveRequest,
  typeof futuresRetrieveRequest
> = strictObject("FuturesRetrieveRequest", futuresRetrieveRequest, { since: "0.26.0" });

const futureCompletion = {
  /** Whether there is a result. */
  state: required(openEnumeration(["finished", "failed"]), {}),
  /** The id from the receipt. */
  requestId: string,
  /** Size of the result in bytes, where there is one. */
  responsePayloadUncompressedSize: optional(integer),
};

/** A sample that has finished; its result or error is fetched with `retrieve_future`. */
export interface FutureCompletion extends OpenValues<typeof futureCompletion> {}
export const FutureCompletion: OpenSchema<FutureCompletion, typeof futureCompletion> = openObject(
  "FutureCompletion",
  futureCompletion,
  { since: "0.26.0" },
);

const futuresRetrieveResponse = {
  /** The samples, in the order in which they finished. */
  completions: array(FutureCompletion),
  /** What to send with the next poll. */
  cursor: integer,
};

/** Samples that have finished since the last poll. */
export interface FuturesRetrieveResponse extends OpenValues<typeof futuresRetrieveResponse> {}
export const FuturesRetrieveResponse: OpenSchema<
  FuturesRetrieveResponse,
  typeof futuresRetrieveResponse
> = openObject("FuturesRetrieveResponse", futuresRetrieveResponse, { since: "0.26.0" });
