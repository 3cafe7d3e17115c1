import {
  array,
  describedBy,
  enumeration,
  integer,
  json,
  openEnumeration,
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
  type ValueOf,
} from "../schema/schema.js";
import type { Timestamp } from "../schema/timestamp.js";

export const EventType = enumeration([
  "SESSION_START",
  "SESSION_END",
  "UNHANDLED_EXCEPTION",
  "GENERIC_EVENT",
]);
/** Kinds of events. */
export type EventType = ValueOf<typeof EventType>;

export const Severity = enumeration(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]);
/** How grave an event is. */
export type Severity = ValueOf<typeof Severity>;

const common = <const T extends string>(event: T) => ({
  event: required(enumeration([event]), {}),
  eventId: string,
  eventSessionIndex: integer,
  severity: Severity,
  timestamp,
});

/** What every event tells. */
export interface TelemetryEventBase extends KeepsUnknownFields {
  /** Id of the event. */
  eventId: string;
  /** Number of the event within its session. */
  eventSessionIndex: number;
  /** How grave it is. */
  severity: Severity;
  /** When it happened. */
  timestamp: Timestamp;
}

/** A session was opened. */
export interface SessionStartEvent extends TelemetryEventBase {
  /** Marks the kind of event. */
  event: "SESSION_START";
}

export const SessionStartEvent = describedBy<SessionStartEvent>()(
  openObject("SessionStartEvent", common("SESSION_START")),
);

/** A session was closed. */
export interface SessionEndEvent extends TelemetryEventBase {
  /** How long it was open, as text (`0:00:12.5`). */
  duration: string;
  /** Marks the kind of event. */
  event: "SESSION_END";
}

export const SessionEndEvent = describedBy<SessionEndEvent>()(
  openObject("SessionEndEvent", {
    duration: string,
    ...common("SESSION_END"),
  }),
);

/** An error left the client. */
export interface UnhandledExceptionEvent extends TelemetryEventBase {
  /** The words of the error, without secrets. */
  errorMessage: string;
  /** The class of the error. */
  errorType: string;
  /** Marks the kind of event. */
  event: "UNHANDLED_EXCEPTION";
  /** Where it came from. */
  traceback: string | null;
}

export const UnhandledExceptionEvent = describedBy<UnhandledExceptionEvent>()(
  openObject("UnhandledExceptionEvent", {
    errorMessage: string,
    errorType: string,
    ...common("UNHANDLED_EXCEPTION"),
    traceback: optional(string),
  }),
);

/** Something else that the service wants to know of. */
export interface GenericEvent extends TelemetryEventBase {
  /** Marks the kind of event. */
  event: "GENERIC_EVENT";
  /** What it is. */
  eventName: string;
  /**
   * Facts about it.
   * @default {}
   */
  eventData: Record<string, unknown>;
}

export const GenericEvent = describedBy<GenericEvent>()(
  openObject("GenericEvent", {
    ...common("GENERIC_EVENT"),
    eventName: string,
    eventData: withDefault(record(json), {}),
  }),
);

export const TelemetryEvent = tagged("TelemetryEvent", "event", {
  SESSION_START: SessionStartEvent,
  SESSION_END: SessionEndEvent,
  UNHANDLED_EXCEPTION: UnhandledExceptionEvent,
  GENERIC_EVENT: GenericEvent,
});
/** One event. */
export type TelemetryEvent = ValueOf<typeof TelemetryEvent>;
/** One event as it may be written: what has a default may be left out. */
export type TelemetryEventInput = InputOf<typeof TelemetryEvent>;

const batch = {
  events: array(TelemetryEvent),
  platform: string,
  sdkVersion: string,
  sessionId: string,
  processUuid: required(string, { since: "0.24.0" }),
};

/** Events of one session. */
export interface TelemetrySendRequest {
  /** The events, oldest first. */
  events: TelemetryEvent[];
  /** The operating system. */
  platform: string;
  /** Version of the client. */
  sdkVersion: string;
  /** Id of the session. */
  sessionId: string;
  /** Id of the process. */
  processUuid: string;
}

export const TelemetrySendRequest = describedBy<TelemetrySendRequest>()(
  strictObject("TelemetrySendRequest", batch),
);

/** Events as a server reads them: fields of newer clients are kept. */
export interface TelemetryBatch extends TelemetrySendRequest, KeepsUnknownFields {}

export const TelemetryBatch = describedBy<TelemetryBatch>()(openObject("TelemetryBatch", batch));

/** The events arrived. */
export interface TelemetryResponse extends KeepsUnknownFields {
  /** `accepted`, from every server known. */
  status: "accepted" | (string & {});
}

export const TelemetryResponse = describedBy<TelemetryResponse>()(
  openObject("TelemetryResponse", {
    status: required(openEnumeration(["accepted"]), {}),
  }),
);
