import {
  array,
  boolean,
  enumeration,
  integer,
  number,
  openObject,
  optional,
  record,
  required,
  strictObject,
  string,
  tagged,
  timestamp,
  withDefault,
  type FieldValues,
  type InputOf,
  type OpenSchema,
  type OpenValues,
  type SchemaOf,
} from "../schema/schema.js";

const since = "0.23.3";
const payloadType = <const T extends string>(text: T) => required(enumeration([text]), {});

const getBillingUsageRequest = {
  /** First hour, inclusive; on a full hour. */
  startingOn: timestamp,
  /** End of the window, exclusive; at most 14 days after the start. */
  endingBefore: timestamp,
};

/** The window of a usage request. */
export interface GetBillingUsageRequest extends FieldValues<typeof getBillingUsageRequest> {}
export const GetBillingUsageRequest: SchemaOf<
  GetBillingUsageRequest,
  typeof getBillingUsageRequest
> = strictObject("GetBillingUsageRequest", getBillingUsageRequest, { since });
export type GetBillingUsageRequestInput = InputOf<typeof GetBillingUsageRequest>;

const trainingBillingEvent = {
  /** Marks the kind of usage. */
  type: payloadType("training"),
  /** Tokens of forward and backward passes. */
  tokenCount: integer,
};

/** Tokens that were trained on. */
export interface TrainingBillingEvent extends FieldValues<typeof trainingBillingEvent> {}
export const TrainingBillingEvent: SchemaOf<TrainingBillingEvent, typeof trainingBillingEvent> =
  strictObject("TrainingBillingEvent", trainingBillingEvent, { since });

const samplingPrefillBillingEvent = {
  /** Marks the kind of usage. */
  type: payloadType("sampling_prefill"),
  /** Whether the tokens came from the prompt cache, which has a price of its own. */
  cached: boolean,
  /** Prompt tokens. */
  tokenCount: integer,
};

/** Prompt tokens that were read before sampling. */
export interface SamplingPrefillBillingEvent extends FieldValues<
  typeof samplingPrefillBillingEvent
> {}
export const SamplingPrefillBillingEvent: SchemaOf<
  SamplingPrefillBillingEvent,
  typeof samplingPrefillBillingEvent
> = strictObject("SamplingPrefillBillingEvent", samplingPrefillBillingEvent, { since });

const samplingSampleBillingEvent = {
  /** Marks the kind of usage. */
  type: payloadType("sampling_sample"),
  /** Sampled tokens. */
  tokenCount: integer,
};

/** Tokens that were sampled. */
export interface SamplingSampleBillingEvent extends FieldValues<
  typeof samplingSampleBillingEvent
> {}
export const SamplingSampleBillingEvent: SchemaOf<
  SamplingSampleBillingEvent,
  typeof samplingSampleBillingEvent
> = strictObject("SamplingSampleBillingEvent", samplingSampleBillingEvent, { since });

const checkpointBillingEvent = {
  /** Marks the kind of usage. */
  type: payloadType("checkpoint"),
  /** How many checkpoints. */
  count: integer,
};

/** Checkpoints that were written. */
export interface CheckpointBillingEvent extends FieldValues<typeof checkpointBillingEvent> {}
export const CheckpointBillingEvent: SchemaOf<
  CheckpointBillingEvent,
  typeof checkpointBillingEvent
> = strictObject("CheckpointBillingEvent", checkpointBillingEvent, { since });

const storageBillingEvent = {
  /** Marks the kind of usage. */
  type: payloadType("storage"),
  /** Gigabytes times the hours they were kept. */
  gigabyteHours: number,
};

/** Space that checkpoints took. */
export interface StorageBillingEvent extends FieldValues<typeof storageBillingEvent> {}
export const StorageBillingEvent: SchemaOf<StorageBillingEvent, typeof storageBillingEvent> =
  strictObject("StorageBillingEvent", storageBillingEvent, { since });

export const BillingEventInfo = tagged("BillingEventInfo", "type", {
  training: TrainingBillingEvent,
  sampling_prefill: SamplingPrefillBillingEvent,
  sampling_sample: SamplingSampleBillingEvent,
  checkpoint: CheckpointBillingEvent,
  storage: StorageBillingEvent,
});
/** What was used, by kind. */
export type BillingEventInfo =
  | TrainingBillingEvent
  | SamplingPrefillBillingEvent
  | SamplingSampleBillingEvent
  | CheckpointBillingEvent
  | StorageBillingEvent;

const billingUsageEvent = {
  /** Start of the hour, inclusive. */
  bucketStart: timestamp,
  /** End of the hour, exclusive. */
  bucketEnd: timestamp,
  /** The base model that was used; null where the usage belongs to none. */
  baseModel: optional(string),
  /** Id of the user who used it. */
  userId: optional(string),
  /** Name of that user. */
  userName: optional(string),
  /** The session it belongs to; its metadata is in `sessions` of the response. */
  sessionId: optional(string),
  /** The project that the session belongs to. */
  projectId: optional(string),
  /** What was used, and how much. */
  eventInfo: BillingEventInfo,
};

/** What one session used of one thing within one hour. */
export interface BillingUsageEvent extends OpenValues<typeof billingUsageEvent> {}
export const BillingUsageEvent: OpenSchema<BillingUsageEvent, typeof billingUsageEvent> =
  openObject("BillingUsageEvent", billingUsageEvent, { since });

const billingUsageSession = {
  /** The metadata that the session was opened with. */
  userMetadata: optional(record(string)),
};

/** The session part of a usage entry. */
export interface BillingUsageSession extends OpenValues<typeof billingUsageSession> {}
export const BillingUsageSession: OpenSchema<BillingUsageSession, typeof billingUsageSession> =
  openObject("BillingUsageSession", billingUsageSession, { since });

const billingUsageResponse = {
  /** One entry per hour, session and kind of usage. */
  data: array(BillingUsageEvent),
  /**
   * The sessions that the entries name, by id.
   * @default {}
   */
  sessions: withDefault(record(BillingUsageSession), {}),
};

/** Usage within a window, by hour, session and kind. */
export interface BillingUsageResponse extends OpenValues<typeof billingUsageResponse> {}
export const BillingUsageResponse: OpenSchema<BillingUsageResponse, typeof billingUsageResponse> =
  openObject("BillingUsageResponse", billingUsageResponse, { since });
