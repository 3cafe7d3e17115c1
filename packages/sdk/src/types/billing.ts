import {
  array,
  boolean,
  describedBy,
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
  type KeepsUnknownFields,
} from "../schema/schema.js";
import type { Timestamp } from "../schema/timestamp.js";

const since = "0.23.3";
const payloadType = <const T extends string>(text: T) => required(enumeration([text]), {});

/** The window whose usage is asked for. */
export interface GetBillingUsageRequest {
  /** First hour, inclusive; on a full hour. */
  startingOn: Timestamp;
  /** End of the window, exclusive; at most 14 days after the start. */
  endingBefore: Timestamp;
}

export const GetBillingUsageRequest = describedBy<GetBillingUsageRequest>()(
  strictObject(
    "GetBillingUsageRequest",
    { startingOn: timestamp, endingBefore: timestamp },
    { since },
  ),
);
export type GetBillingUsageRequestInput = InputOf<typeof GetBillingUsageRequest>;

/** Tokens that were trained on. */
export interface TrainingBillingEvent {
  /** Marks the kind of usage. */
  type: "training";
  /** Tokens of forward and backward passes. */
  tokenCount: number;
}

export const TrainingBillingEvent = describedBy<TrainingBillingEvent>()(
  strictObject(
    "TrainingBillingEvent",
    { type: payloadType("training"), tokenCount: integer },
    { since },
  ),
);

/** Prompt tokens that were read before sampling. */
export interface SamplingPrefillBillingEvent {
  /** Marks the kind of usage. */
  type: "sampling_prefill";
  /** Whether the tokens came from the prompt cache, which has a price of its own. */
  cached: boolean;
  /** Prompt tokens. */
  tokenCount: number;
}

export const SamplingPrefillBillingEvent = describedBy<SamplingPrefillBillingEvent>()(
  strictObject(
    "SamplingPrefillBillingEvent",
    { type: payloadType("sampling_prefill"), cached: boolean, tokenCount: integer },
    { since },
  ),
);

/** Tokens that were sampled. */
export interface SamplingSampleBillingEvent {
  /** Marks the kind of usage. */
  type: "sampling_sample";
  /** Sampled tokens. */
  tokenCount: number;
}

export const SamplingSampleBillingEvent = describedBy<SamplingSampleBillingEvent>()(
  strictObject(
    "SamplingSampleBillingEvent",
    { type: payloadType("sampling_sample"), tokenCount: integer },
    { since },
  ),
);

/** Checkpoints that were written. */
export interface CheckpointBillingEvent {
  /** Marks the kind of usage. */
  type: "checkpoint";
  /** How many checkpoints. */
  count: number;
}

export const CheckpointBillingEvent = describedBy<CheckpointBillingEvent>()(
  strictObject(
    "CheckpointBillingEvent",
    { type: payloadType("checkpoint"), count: integer },
    { since },
  ),
);

/** Space that checkpoints took. */
export interface StorageBillingEvent {
  /** Marks the kind of usage. */
  type: "storage";
  /** Gigabytes times the hours they were kept. */
  gigabyteHours: number;
}

export const StorageBillingEvent = describedBy<StorageBillingEvent>()(
  strictObject(
    "StorageBillingEvent",
    { type: payloadType("storage"), gigabyteHours: number },
    { since },
  ),
);

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

/** What one session used of one thing within one hour. */
export interface BillingUsageEvent extends KeepsUnknownFields {
  /** Start of the hour, inclusive. */
  bucketStart: Timestamp;
  /** End of the hour, exclusive. */
  bucketEnd: Timestamp;
  /** The base model that was used; null where the usage belongs to none. */
  baseModel: string | null;
  /** Id of the user who used it. */
  userId: string | null;
  /** Name of that user. */
  userName: string | null;
  /** The session it belongs to; its metadata is in `sessions` of the response. */
  sessionId: string | null;
  /** The project that the session belongs to. */
  projectId: string | null;
  /** What was used, and how much. */
  eventInfo: BillingEventInfo;
}

export const BillingUsageEvent = describedBy<BillingUsageEvent>()(
  openObject(
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
  ),
);

/** What usage tells about a session. */
export interface BillingUsageSession extends KeepsUnknownFields {
  /** The metadata that the session was opened with. */
  userMetadata: Record<string, string> | null;
}

export const BillingUsageSession = describedBy<BillingUsageSession>()(
  openObject("BillingUsageSession", { userMetadata: optional(record(string)) }, { since }),
);

/** Usage within a window, by hour, session and kind. */
export interface BillingUsageResponse extends KeepsUnknownFields {
  /** One entry per hour, session and kind of usage. */
  data: BillingUsageEvent[];
  /**
   * The sessions that the entries name, by id.
   * @default {}
   */
  sessions: Record<string, BillingUsageSession>;
}

export const BillingUsageResponse = describedBy<BillingUsageResponse>()(
  openObject(
    "BillingUsageResponse",
    {
      data: array(BillingUsageEvent),
      sessions: withDefault(record(BillingUsageSession), {}),
    },
    { since },
  ),
);
