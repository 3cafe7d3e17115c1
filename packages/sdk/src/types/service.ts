import {
  array,
  boolean,
  integer,
  json,
  literal,
  openEnumeration,
  openObject,
  optional,
  record,
  required,
  strictObject,
  string,
  withDefault,
  type FieldValues,
  type OpenSchema,
  type OpenValues,
  type SchemaOf,
} from "../schema/schema.js";

const healthResponse = {
  /** `ok`, from every server known. */
  status: required(openEnumeration(["ok"]), {}),
};

/** The server is up. */
export interface HealthResponse extends OpenValues<typeof healthResponse> {}
export const HealthResponse: OpenSchema<HealthResponse, typeof healthResponse> = openObject(
  "HealthResponse",
  healthResponse,
);

const supportedModel = {
  /** The name to use as `baseModel`. */
  modelName: optional(string),
  /** Most tokens of prompt and output together. */
  maxContextLength: optional(integer, { since: "0.18.0" }),
};

/** A model that the server can train or sample from. */
export interface SupportedModel extends OpenValues<typeof supportedModel> {}
export const SupportedModel: OpenSchema<SupportedModel, typeof supportedModel> = openObject(
  "SupportedModel",
  supportedModel,
);

const getServerCapabilitiesResponse = {
  /** The models on its list; others may load too, where it takes them from the hub. */
  supportedModels: array(SupportedModel),
};

/** What the server offers. */
export interface GetServerCapabilitiesResponse extends OpenValues<
  typeof getServerCapabilitiesResponse
> {}
export const GetServerCapabilitiesResponse: OpenSchema<
  GetServerCapabilitiesResponse,
  typeof getServerCapabilitiesResponse
> = openObject("GetServerCapabilitiesResponse", getServerCapabilitiesResponse);

const clientConfigRequest = {
  /** Version of the client, by which the server decides. */
  sdkVersion: string,
};

/** Asks for the settings that the server wants this client to use. */
export interface ClientConfigRequest extends FieldValues<typeof clientConfigRequest> {}
export const ClientConfigRequest: SchemaOf<ClientConfigRequest, typeof clientConfigRequest> =
  strictObject("ClientConfigRequest", clientConfigRequest, { since: "0.18.0" });

const clientConfigResponse = {
  /**
   * Whether the key is exchanged for a short-lived token.
   * @default false
   */
  pjwtAuthEnabled: withDefault(boolean, false),
  /**
   * Which credential that exchange uses: `api_key` or `credential_cmd`.
   * @default "api_key"
   */
  credentialDefaultSource: withDefault(string, "api_key"),
  /**
   * Bytes of sample requests that may be on their way at once.
   * @default 10485760
   */
  sampleDispatchBytesSemaphoreSize: withDefault(integer, 10 * 1024 * 1024),
  /**
   * Bytes of large results that may be fetched at once.
   * @default 52428800
   */
  inflightResponseBytesSemaphoreSize: withDefault(integer, 50 * 1024 * 1024),
  /**
   * Whether the chunks of one pass are sent at the same time.
   * @default true
   */
  parallelFwdbwdChunks: withDefault(boolean, true),
  /**
   * Whether passes are sent compressed (zstd).
   * @default false
   */
  protoCompressFwdbwd: withDefault(boolean, false, { since: "0.22.3" }),
  /**
   * Most data in one chunk of a pass.
   * @default 1024
   */
  fwdbwdMaxChunkLen: withDefault(integer, 1024, { since: "0.25.0" }),
  /**
   * Most bytes in one chunk of a pass, by estimate and before compression.
   * @default 5000000
   */
  fwdbwdMaxChunkBytesCount: withDefault(integer, 5_000_000, { since: "0.25.0" }),
  /**
   * Bytes of passes that may be on their way at once, by estimate.
   * @default 50000000
   */
  fwdbwdDispatchBytesSemaphoreSize: withDefault(integer, 50_000_000),
  /**
   * Seconds that a client waits for an account to be topped up (402).
   * @default 3600
   */
  billingExceptionMaxPauseDurationSec: withDefault(integer, 3600, { since: "0.20.0" }),
  /**
   * Whether samples are made once, without retries.
   * @default false
   */
  sampleNoRetries: withDefault(boolean, false),
  /**
   * Whether samples fail when none of them makes progress for long.
   * @default true
   */
  sampleEnableStuckDetection: withDefault(boolean, true),
  /**
   * Most samples of a client that run at once.
   * @default 2000
   */
  sampleMaxConcurrentRequests: withDefault(integer, 2000),
  /**
   * Which HTTP library the Python client uses; means nothing here.
   * @default true
   */
  usePyqwestTransport: withDefault(boolean, true),
  /**
   * Whether a model is made from a checkpoint with one request instead of two.
   * @default false
   */
  createModelViaLoadWeights: withDefault(boolean, false, { since: "0.24.1" }),
};

/** Settings of the client that the server decides. */
export interface ClientConfigResponse extends OpenValues<typeof clientConfigResponse> {}
export const ClientConfigResponse: OpenSchema<ClientConfigResponse, typeof clientConfigResponse> =
  openObject("ClientConfigResponse", clientConfigResponse, { since: "0.18.0" });

const clientDynamicConfigResponse = {
  /**
   * Seconds until they are asked for again.
   * @default 300
   */
  refreshIntervalSec: withDefault(integer, 300),
};

/** Settings that may change while a client runs. */
export interface ClientDynamicConfigResponse extends OpenValues<
  typeof clientDynamicConfigResponse
> {}
export const ClientDynamicConfigResponse: OpenSchema<
  ClientDynamicConfigResponse,
  typeof clientDynamicConfigResponse
> = openObject("ClientDynamicConfigResponse", clientDynamicConfigResponse, {
  since: "0.25.0",
});

export const AuthTokenRequest = strictObject("AuthTokenRequest", {}, { since: "0.18.0" });

const authTokenResponse = {
  /** The token, sent in place of the key. */
  jwt: string,
};

/** A short-lived token in exchange for a key. */
export interface AuthTokenResponse extends OpenValues<typeof authTokenResponse> {}
export const AuthTokenResponse: OpenSchema<AuthTokenResponse, typeof authTokenResponse> =
  openObject("AuthTokenResponse", authTokenResponse, { since: "0.18.0" });

const createSessionRequest = {
  /** Labels of the session, from `TINKER_TAGS`. */
  tags: array(string),
  /** Facts about the program, kept with the session. */
  userMetadata: record(json),
  /** Version of the client. */
  sdkVersion: string,
  /** The project that the session belongs to. */
  projectId: optional(string, { since: "0.15.0" }),
  /** A name for people to read. */
  displayName: optional(string, { since: "0.38.0" }),
  /** Marks the request. */
  type: literal("create_session"),
};

/** Opens a session: what a program makes belongs to it. */
export interface CreateSessionRequest extends FieldValues<typeof createSessionRequest> {}
export const CreateSessionRequest: SchemaOf<CreateSessionRequest, typeof createSessionRequest> =
  strictObject("CreateSessionRequest", createSessionRequest);

const createSessionResponse = {
  /** Marks the answer. */
  type: literal("create_session"),
  /** A notice for the user. */
  infoMessage: optional(string),
  /** A warning for the user. */
  warningMessage: optional(string),
  /** An error for the user; the session is open all the same. */
  errorMessage: optional(string),
  /** Id of the session. */
  sessionId: string,
};

/** A session was opened. */
export interface CreateSessionResponse extends OpenValues<typeof createSessionResponse> {}
export const CreateSessionResponse: OpenSchema<
  CreateSessionResponse,
  typeof createSessionResponse
> = openObject("CreateSessionResponse", createSessionResponse);

const finishReason = {
  /** How the program ended. */
  type: required(openEnumeration(["success", "errored", "interrupted"]), {}),
};

/** Why a session is finished. */
export interface FinishReason extends OpenValues<typeof finishReason> {}
export const FinishReason: OpenSchema<FinishReason, typeof finishReason> = openObject(
  "FinishReason",
  finishReason,
  { since: "0.29.1" },
);

const finishSessionRequest = {
  /** Why. */
  reason: FinishReason,
  /** What happened, for people to read. */
  detail: optional(string),
};

/** Finishes a session: its program has ended. */
export interface FinishSessionRequest extends FieldValues<typeof finishSessionRequest> {}
export const FinishSessionRequest: SchemaOf<FinishSessionRequest, typeof finishSessionRequest> =
  strictObject("FinishSessionRequest", finishSessionRequest, { since: "0.29.1" });

const organizationDetails = {
  /** Its name. */
  name: optional(string),
};

/** The organization of a key. */
export interface OrganizationDetails extends OpenValues<typeof organizationDetails> {}
export const OrganizationDetails: OpenSchema<OrganizationDetails, typeof organizationDetails> =
  openObject("OrganizationDetails", organizationDetails, { since: "0.26.0" });

const userDetails = {
  /** The user's address. */
  email: optional(string),
};

/** The user of a key. */
export interface UserDetails extends OpenValues<typeof userDetails> {}
export const UserDetails: OpenSchema<UserDetails, typeof userDetails> = openObject(
  "UserDetails",
  userDetails,
  { since: "0.26.0" },
);

const apiKeyDetails = {
  /** The organization. */
  orgDetails: optional(OrganizationDetails),
  /** The user. */
  userDetails: optional(UserDetails),
};

/** The owner of a key. */
export interface ApiKeyDetails extends OpenValues<typeof apiKeyDetails> {}
export const ApiKeyDetails: OpenSchema<ApiKeyDetails, typeof apiKeyDetails> = openObject(
  "ApiKeyDetails",
  apiKeyDetails,
  { since: "0.26.0" },
);

const apiKeyResponse = {
  /** Number of the key. */
  keyId: integer,
  /** Name of the key. */
  name: string,
  /** What the key is for, where that was written down. */
  note: optional(string),
  /** The owner of the key. */
  details: ApiKeyDetails,
};

/** The credential of the caller. */
export interface ApiKeyResponse extends OpenValues<typeof apiKeyResponse> {}
export const ApiKeyResponse: OpenSchema<ApiKeyResponse, typeof apiKeyResponse> = openObject(
  "ApiKeyResponse",
  apiKeyResponse,
  { since: "0.26.0" },
);

const sessionHeartbeatRequest = {
  /** Id of the session. */
  sessionId: string,
  /** Marks the request. */
  type: literal("session_heartbeat"),
};

/** A heartbeat of the program; without it the server ends the session. */
export interface SessionHeartbeatRequest extends FieldValues<typeof sessionHeartbeatRequest> {}
export const SessionHeartbeatRequest: SchemaOf<
  SessionHeartbeatRequest,
  typeof sessionHeartbeatRequest
> = strictObject("SessionHeartbeatRequest", sessionHeartbeatRequest);

const sessionHeartbeatResponse = {
  /** Marks the answer. */
  type: literal("session_heartbeat"),
};

/** A heartbeat was received. */
export interface SessionHeartbeatResponse extends OpenValues<typeof sessionHeartbeatResponse> {}
export const SessionHeartbeatResponse: OpenSchema<
  SessionHeartbeatResponse,
  typeof sessionHeartbeatResponse
> = openObject("SessionHeartbeatResponse", sessionHeartbeatResponse);

const createSamplingSessionRequest = {
  /** The session it belongs to. */
  sessionId: string,
  /** Number within the session; the same number twice is the same sampling session. */
  samplingSessionSeqId: integer,
  /** The base model; optional with `modelPath`, which implies it. */
  baseModel: optional(string),
  /** The saved weights on top of it. */
  modelPath: optional(string),
  /** Marks the request. */
  type: literal("create_sampling_session"),
};

/** Opens a sampling session: a name for weights to sample from. */
export interface CreateSamplingSessionRequest extends FieldValues<
  typeof createSamplingSessionRequest
> {}
export const CreateSamplingSessionRequest: SchemaOf<
  CreateSamplingSessionRequest,
  typeof createSamplingSessionRequest
> = strictObject("CreateSamplingSessionRequest", createSamplingSessionRequest);

const createSamplingSessionResponse = {
  /** Marks the answer. */
  type: literal("create_sampling_session"),
  /** Id of the sampling session. */
  samplingSessionId: string,
};

/** A sampling session was opened. */
export interface CreateSamplingSessionResponse extends OpenValues<
  typeof createSamplingSessionResponse
> {}
export const CreateSamplingSessionResponse: OpenSchema<
  CreateSamplingSessionResponse,
  typeof createSamplingSessionResponse
> = openObject("CreateSamplingSessionResponse", createSamplingSessionResponse);

const getTokenizerResponse = {
  /** The model they belong to. */
  model: string,
  /** What `tokenizer.json` holds. */
  tokenizer: record(json),
  /** What `tokenizer_config.json` holds. */
  tokenizerConfig: optional(record(json)),
  /** The chat template, where it is a file of its own. */
  chatTemplate: optional(string),
};

/** The tokenizer files of a model. */
export interface GetTokenizerResponse extends OpenValues<typeof getTokenizerResponse> {}
export const GetTokenizerResponse: OpenSchema<GetTokenizerResponse, typeof getTokenizerResponse> =
  openObject("GetTokenizerResponse", getTokenizerResponse);
