import {
  array,
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
  type FieldValues,
  type InputOf,
  type KeepsUnknownFields,
  type OpenSchema,
  type OpenValues,
  type SchemaOf,
  type ValueOf,
} from "../schema/schema.js";

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

const common = {
  /** Id of the event. */
  eventId: string,
  /** Number of the event within its session. */
  eventSessionIndex: integer,
  /** How grave it is. */
  severity: Severity,
  /** When it happened. */
  timestamp,
};

/** The fields of every event. */
export interface TelemetryEventBase extends OpenValues<typeof common> {}

const sessionStartEvent = {
  /** Marks the kind of event. */
  event: required(enumeration(["SESSION_START"]), {}),
  ...common,
};

/** A session was opened. */
export interface SessionStartEvent extends OpenValues<typeof sessionStartEvent> {}
export const SessionStartEvent: OpenSchema<SessionStartEvent, typeof sessionStartEvent> =
  openObject("SessionStartEvent", sessionStartEvent);

const sessionEndEvent = {
  /** How long it was open, as text (`0:00:12.5`). */
  duration: string,
  /** Marks the kind of event. */
  event: required(enumeration(["SESSION_END"]), {}),
  ...common,
};

/** A session was closed. */
export interface SessionEndEvent extends OpenValues<typeof sessionEndEvent> {}
export const SessionEndEvent: OpenSchema<SessionEndEvent, typeof sessionEndEvent> = openObject(
  "SessionEndEvent",
  sessionEndEvent,
);

const unhandledExceptionEvent = {
  /** The words of the error, without secrets. */
  errorMessage: string,
  /** The class of the error. */
  errorType: string,
  /** Marks the kind of event. */
  event: required(enumeration(["UNHANDLED_EXCEPTION"]), {}),
  ...common,
  /** Where it came from. */
  traceback: optional(string),
};

/** An error left the client. */
export interface UnhandledExceptionEvent extends OpenValues<typeof unhandledExceptionEvent> {}
export const UnhandledExceptionEvent: OpenSchema<
  UnhandledExceptionEvent,
  typeof unhandledExceptionEvent
> = openObject("UnhandledExceptionEvent", unhandledExceptionEvent);

const genericEvent = {
  /** Marks the kind of event. */
  event: required(enumeration(["GENERIC_EVENT"]), {}),
  ...common,
  /** Name of the event. */
  eventName: string,
  /**
   * Facts about it.
   * @default {}
   */
  eventData: withDefault(record(json), {}),
};

/** Any other event of interest to the service. */
export interface GenericEvent extends OpenValues<typeof genericEvent> {}
export const GenericEvent: OpenSchema<GenericEvent, typeof genericEvent> = openObject(
  "GenericEvent",
  genericEvent,
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
  /** The events, oldest first. */
  events: array(TelemetryEvent),
  /** The operating system. */
  platform: string,
  /** Version of the client. */
  sdkVersion: string,
  /** Id of the session; null from a process that has none. */
  sessionId: optional(string, { isPromised: true }),
  /** Id of the process. */
  processUuid: required(string, { since: "0.24.0" }),
};

/** Events of one session. */
export interface TelemetrySendRequest extends FieldValues<typeof batch> {}
export const TelemetrySendRequest: SchemaOf<TelemetrySendRequest, typeof batch> = strictObject(
  "TelemetrySendRequest",
  batch,
);

/** Events as a server reads them: fields of newer clients are kept. */
export interface TelemetryBatch extends TelemetrySendRequest, KeepsUnknownFields {}
export const TelemetryBatch: OpenSchema<TelemetryBatch, typeof batch> = openObject(
  "TelemetryBatch",
  batch,
);

const telemetryResponse = {
  /** `accepted`, from every server known. */
  status: required(openEnumeration(["accepted"]), {}),
};

/** The events arrived. */
export interface TelemetryResponse extends OpenValues<typeof telemetryResponse> {}
export const TelemetryResponse: OpenSchema<TelemetryResponse, typeof telemetryResponse> =
  openObject("TelemetryResponse", telemetryResponse);
