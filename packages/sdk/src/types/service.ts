import {
  array,
  boolean,
  enumeration,
  integer,
  json,
  literal,
  openObject,
  optional,
  record,
  required,
  strictObject,
  string,
  withDefault,
  type ValueOf,
} from "../schema/schema.js";

export const HealthResponse = openObject("HealthResponse", {
  status: required(enumeration(["ok"]), {}),
});
export type HealthResponse = ValueOf<typeof HealthResponse>;

export const SupportedModel = openObject("SupportedModel", {
  modelName: optional(string),
  maxContextLength: optional(integer, { since: "0.18.0" }),
});
export type SupportedModel = ValueOf<typeof SupportedModel>;

export const GetServerCapabilitiesResponse = openObject("GetServerCapabilitiesResponse", {
  supportedModels: array(SupportedModel),
});
export type GetServerCapabilitiesResponse = ValueOf<typeof GetServerCapabilitiesResponse>;

export const ClientConfigRequest = strictObject(
  "ClientConfigRequest",
  { sdkVersion: string },
  { since: "0.18.0" },
);
export type ClientConfigRequest = ValueOf<typeof ClientConfigRequest>;

const keptFlags = { note: "unknown flags are kept in `unknownFields`; Python drops them" };

export const ClientConfigResponse = openObject(
  "ClientConfigResponse",
  {
    pjwtAuthEnabled: withDefault(boolean, false, keptFlags),
    credentialDefaultSource: withDefault(string, "api_key"),
    sampleDispatchBytesSemaphoreSize: withDefault(integer, 10 * 1024 * 1024),
    inflightResponseBytesSemaphoreSize: withDefault(integer, 50 * 1024 * 1024),
    parallelFwdbwdChunks: withDefault(boolean, true),
    protoCompressFwdbwd: withDefault(boolean, false, { since: "0.22.3" }),
    fwdbwdMaxChunkLen: withDefault(integer, 1024, { since: "0.25.0" }),
    fwdbwdMaxChunkBytesCount: withDefault(integer, 5_000_000, { since: "0.25.0" }),
    fwdbwdDispatchBytesSemaphoreSize: withDefault(integer, 50_000_000),
    billingExceptionMaxPauseDurationSec: withDefault(integer, 3600, { since: "0.20.0" }),
    sampleNoRetries: withDefault(boolean, false),
    sampleEnableStuckDetection: withDefault(boolean, true),
    sampleMaxConcurrentRequests: withDefault(integer, 2000),
    usePyqwestTransport: withDefault(boolean, true),
    createModelViaLoadWeights: withDefault(boolean, false, { since: "0.24.1" }),
  },
  { since: "0.18.0" },
);
export type ClientConfigResponse = ValueOf<typeof ClientConfigResponse>;

export const ClientDynamicConfigResponse = openObject(
  "ClientDynamicConfigResponse",
  { refreshIntervalSec: withDefault(integer, 300) },
  { since: "0.25.0" },
);
export type ClientDynamicConfigResponse = ValueOf<typeof ClientDynamicConfigResponse>;

export const AuthTokenRequest = strictObject("AuthTokenRequest", {}, { since: "0.18.0" });

export const AuthTokenResponse = openObject(
  "AuthTokenResponse",
  { jwt: string },
  { since: "0.18.0" },
);
export type AuthTokenResponse = ValueOf<typeof AuthTokenResponse>;

export const CreateSessionRequest = strictObject("CreateSessionRequest", {
  tags: array(string),
  userMetadata: required(record(json), { note: "never null; Python allows null" }),
  sdkVersion: string,
  projectId: optional(string, { since: "0.15.0" }),
  type: literal("create_session"),
});
export type CreateSessionRequest = ValueOf<typeof CreateSessionRequest>;

export const CreateSessionResponse = openObject("CreateSessionResponse", {
  type: literal("create_session"),
  infoMessage: optional(string),
  warningMessage: optional(string),
  errorMessage: optional(string),
  sessionId: string,
});
export type CreateSessionResponse = ValueOf<typeof CreateSessionResponse>;

export const SessionHeartbeatRequest = strictObject("SessionHeartbeatRequest", {
  sessionId: string,
  type: literal("session_heartbeat"),
});
export type SessionHeartbeatRequest = ValueOf<typeof SessionHeartbeatRequest>;

export const SessionHeartbeatResponse = openObject("SessionHeartbeatResponse", {
  type: literal("session_heartbeat"),
});
export type SessionHeartbeatResponse = ValueOf<typeof SessionHeartbeatResponse>;

export const CreateSamplingSessionRequest = strictObject("CreateSamplingSessionRequest", {
  sessionId: string,
  samplingSessionSeqId: integer,
  baseModel: optional(string),
  modelPath: optional(string),
  type: literal("create_sampling_session"),
});
export type CreateSamplingSessionRequest = ValueOf<typeof CreateSamplingSessionRequest>;

export const CreateSamplingSessionResponse = openObject("CreateSamplingSessionResponse", {
  type: literal("create_sampling_session"),
  samplingSessionId: string,
});
export type CreateSamplingSessionResponse = ValueOf<typeof CreateSamplingSessionResponse>;

export const GetTokenizerResponse = openObject("GetTokenizerResponse", {
  model: string,
  tokenizer: required(record(json), {
    note: "an addition of this project, so that clients need no hub",
  }),
  tokenizerConfig: optional(record(json)),
  chatTemplate: optional(string),
});
/** The tokenizer files of a model: `tokenizer.json`, `tokenizer_config.json` and the chat template. */
export type GetTokenizerResponse = ValueOf<typeof GetTokenizerResponse>;
