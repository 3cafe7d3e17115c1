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
  type InputOf,
  type ValueOf,
} from "../schema/schema.js";

const since = "0.23.3";
const payloadType = <const T extends string>(text: T) => required(enumeration([text]), {});

export const GetBillingUsageRequest = strictObject(
  "GetBillingUsageRequest",
  { startingOn: timestamp, endingBefore: timestamp },
  { since },
);
export type GetBillingUsageRequest = ValueOf<typeof GetBillingUsageRequest>;
export type GetBillingUsageRequestInput = InputOf<typeof GetBillingUsageRequest>;

export const TrainingBillingEvent = strictObject(
  "TrainingBillingEvent",
  { type: payloadType("training"), tokenCount: integer },
  { since },
);
export type TrainingBillingEvent = ValueOf<typeof TrainingBillingEvent>;

export const SamplingPrefillBillingEvent = strictObject(
  "SamplingPrefillBillingEvent",
  { type: payloadType("sampling_prefill"), cached: boolean, tokenCount: integer },
  { since },
);
export type SamplingPrefillBillingEvent = ValueOf<typeof SamplingPrefillBillingEvent>;

export const SamplingSampleBillingEvent = strictObject(
  "SamplingSampleBillingEvent",
  { type: payloadType("sampling_sample"), tokenCount: integer },
  { since },
);
export type SamplingSampleBillingEvent = ValueOf<typeof SamplingSampleBillingEvent>;

export const CheckpointBillingEvent = strictObject(
  "CheckpointBillingEvent",
  { type: payloadType("checkpoint"), count: integer },
  { since },
);
export type CheckpointBillingEvent = ValueOf<typeof CheckpointBillingEvent>;

export const StorageBillingEvent = strictObject(
  "StorageBillingEvent",
  { type: payloadType("storage"), gigabyteHours: number },
  { since },
);
export type StorageBillingEvent = ValueOf<typeof StorageBillingEvent>;

export const BillingEventInfo = tagged("BillingEventInfo", "type", {
  training: TrainingBillingEvent,
  sampling_prefill: SamplingPrefillBillingEvent,
  sampling_sample: SamplingSampleBillingEvent,
  checkpoint: CheckpointBillingEvent,
  storage: StorageBillingEvent,
});
/** What was used, by kind. */
export type BillingEventInfo = ValueOf<typeof BillingEventInfo>;

export const BillingUsageEvent = openObject(
  "BillingUsageEvent",
  {
    bucketStart: timestamp,
    bucketEnd: timestamp,
    baseModel: optional(string),
    userId: optional(string),
    userName: optional(string),
    sessionId: optional(string),
    projectId: optional(string),
    eventInfo: BillingEventInfo,
  },
  { since },
);
export type BillingUsageEvent = ValueOf<typeof BillingUsageEvent>;

export const BillingUsageSession = openObject(
  "BillingUsageSession",
  { userMetadata: optional(record(string)) },
  { since },
);
export type BillingUsageSession = ValueOf<typeof BillingUsageSession>;

export const BillingUsageResponse = openObject(
  "BillingUsageResponse",
  {
    data: array(BillingUsageEvent),
    sessions: withDefault(record(BillingUsageSession), {}),
  },
  { since },
);
export type BillingUsageResponse = ValueOf<typeof BillingUsageResponse>;
