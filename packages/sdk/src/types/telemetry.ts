import {
  array,
  enumeration,
  integer,
  json,
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

export const EventType = enumeration([
  "SESSION_START",
  "SESSION_END",
  "UNHANDLED_EXCEPTION",
  "GENERIC_EVENT",
]);
export type EventType = ValueOf<typeof EventType>;

export const Severity = enumeration(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]);
export type Severity = ValueOf<typeof Severity>;

const common = <const T extends string>(event: T) => ({
  event: required(enumeration([event]), {}),
  eventId: string,
  eventSessionIndex: integer,
  severity: Severity,
  timestamp,
});

export const SessionStartEvent = openObject("SessionStartEvent", common("SESSION_START"));
export type SessionStartEvent = ValueOf<typeof SessionStartEvent>;

export const SessionEndEvent = openObject("SessionEndEvent", {
  duration: string,
  ...common("SESSION_END"),
});
export type SessionEndEvent = ValueOf<typeof SessionEndEvent>;

export const UnhandledExceptionEvent = openObject("UnhandledExceptionEvent", {
  errorMessage: string,
  errorType: string,
  ...common("UNHANDLED_EXCEPTION"),
  traceback: optional(string),
});
export type UnhandledExceptionEvent = ValueOf<typeof UnhandledExceptionEvent>;

export const GenericEvent = openObject("GenericEvent", {
  ...common("GENERIC_EVENT"),
  eventName: string,
  eventData: withDefault(record(json), {}),
});
export type GenericEvent = ValueOf<typeof GenericEvent>;

export const TelemetryEvent = tagged("TelemetryEvent", "event", {
  SESSION_START: SessionStartEvent,
  SESSION_END: SessionEndEvent,
  UNHANDLED_EXCEPTION: UnhandledExceptionEvent,
  GENERIC_EVENT: GenericEvent,
});
export type TelemetryEvent = ValueOf<typeof TelemetryEvent>;
export type TelemetryEventInput = InputOf<typeof TelemetryEvent>;

const batch = {
  events: array(TelemetryEvent),
  platform: string,
  sdkVersion: string,
  sessionId: string,
  processUuid: required(string, { since: "0.24.0" }),
};

export const TelemetrySendRequest = strictObject("TelemetrySendRequest", batch);
export type TelemetrySendRequest = ValueOf<typeof TelemetrySendRequest>;

export const TelemetryBatch = openObject("TelemetryBatch", batch);
export type TelemetryBatch = ValueOf<typeof TelemetryBatch>;

export const TelemetryResponse = openObject("TelemetryResponse", {
  status: required(enumeration(["accepted"]), {}),
});
export type TelemetryResponse = ValueOf<typeof TelemetryResponse>;
