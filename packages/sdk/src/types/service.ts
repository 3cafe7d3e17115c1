import {
  array,
  boolean,
  describedBy,
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
  type KeepsUnknownFields,
} from "../schema/schema.js";

/** The server is up. */
export interface HealthResponse extends KeepsUnknownFields {
  /** `ok`, from every server known. */
  status: "ok" | (string & {});
}

export const HealthResponse = describedBy<HealthResponse>()(
  openObject("HealthResponse", {
    status: required(openEnumeration(["ok"]), {}),
  }),
);

/** A model that the server can train or sample from. */
export interface SupportedModel extends KeepsUnknownFields {
  /** The name to use as `baseModel`. */
  modelName: string | null;
  /** Most tokens of prompt and output together. */
  maxContextLength: number | null;
}

export const SupportedModel = describedBy<SupportedModel>()(
  openObject("SupportedModel", {
    modelName: optional(string),
    maxContextLength: optional(integer, { since: "0.18.0" }),
  }),
);

/** What the server offers. */
export interface GetServerCapabilitiesResponse extends KeepsUnknownFields {
  /** The models it knows; others may load too, where it takes them from the hub. */
  supportedModels: SupportedModel[];
}

export const GetServerCapabilitiesResponse = describedBy<GetServerCapabilitiesResponse>()(
  openObject("GetServerCapabilitiesResponse", {
    supportedModels: array(SupportedModel),
  }),
);

/** Asks for the settings that the server wants this client to use. */
export interface ClientConfigRequest {
  /** Version of the client, by which the server decides. */
  sdkVersion: string;
}

export const ClientConfigRequest = describedBy<ClientConfigRequest>()(
  strictObject("ClientConfigRequest", { sdkVersion: string }, { since: "0.18.0" }),
);

const keptFlags = { note: "unknown flags are kept in `unknownFields`; Python drops them" };

/** Settings of the client that the server decides. */
export interface ClientConfigResponse extends KeepsUnknownFields {
  /**
   * Whether the key is exchanged for a short-lived token.
   * @default false
   */
  pjwtAuthEnabled: boolean;
  /**
   * Which credential that exchange uses: `api_key` or `credential_cmd`.
   * @default "api_key"
   */
  credentialDefaultSource: string;
  /**
   * Bytes of sample requests that may be on their way at once.
   * @default 10485760
   */
  sampleDispatchBytesSemaphoreSize: number;
  /**
   * Bytes of large results that may be fetched at once.
   * @default 52428800
   */
  inflightResponseBytesSemaphoreSize: number;
  /**
   * Whether the chunks of one pass are sent at the same time.
   * @default true
   */
  parallelFwdbwdChunks: boolean;
  /**
   * Whether passes are sent compressed (zstd).
   * @default false
   */
  protoCompressFwdbwd: boolean;
  /**
   * Most data in one chunk of a pass.
   * @default 1024
   */
  fwdbwdMaxChunkLen: number;
  /**
   * Most bytes in one chunk of a pass, by estimate and before compression.
   * @default 5000000
   */
  fwdbwdMaxChunkBytesCount: number;
  /**
   * Bytes of passes that may be on their way at once, by estimate.
   * @default 50000000
   */
  fwdbwdDispatchBytesSemaphoreSize: number;
  /**
   * Seconds that a client waits for an account to be topped up (402) before it gives up.
   * @default 3600
   */
  billingExceptionMaxPauseDurationSec: number;
  /**
   * Whether samples are made once, without retries.
   * @default false
   */
  sampleNoRetries: boolean;
  /**
   * Whether samples fail when none of them makes progress for long.
   * @default true
   */
  sampleEnableStuckDetection: boolean;
  /**
   * Most samples of a client that run at once.
   * @default 2000
   */
  sampleMaxConcurrentRequests: number;
  /**
   * Which HTTP library the Python client uses; means nothing here.
   * @default true
   */
  usePyqwestTransport: boolean;
  /**
   * Whether a model is made from a checkpoint with one request instead of two.
   * @default false
   */
  createModelViaLoadWeights: boolean;
}

export const ClientConfigResponse = describedBy<ClientConfigResponse>()(
  openObject(
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
  ),
);

/** Settings that may change while a client runs. */
export interface ClientDynamicConfigResponse extends KeepsUnknownFields {
  /**
   * Seconds until they are asked for again.
   * @default 300
   */
  refreshIntervalSec: number;
}

export const ClientDynamicConfigResponse = describedBy<ClientDynamicConfigResponse>()(
  openObject(
    "ClientDynamicConfigResponse",
    { refreshIntervalSec: withDefault(integer, 300) },
    { since: "0.25.0" },
  ),
);

export const AuthTokenRequest = strictObject("AuthTokenRequest", {}, { since: "0.18.0" });

/** A short-lived token in exchange for a key. */
export interface AuthTokenResponse extends KeepsUnknownFields {
  /** The token, sent in place of the key. */
  jwt: string;
}

export const AuthTokenResponse = describedBy<AuthTokenResponse>()(
  openObject("AuthTokenResponse", { jwt: string }, { since: "0.18.0" }),
);

/** Opens a session: what a program makes belongs to it. */
export interface CreateSessionRequest {
  /** Labels of the session, from `TINKER_TAGS`. */
  tags: string[];
  /** Facts about the program, kept with the session. */
  userMetadata: Record<string, unknown>;
  /** Version of the client. */
  sdkVersion: string;
  /** The project that the session belongs to. */
  projectId: string | null;
  /** Marks the request. */
  type: "create_session";
}

export const CreateSessionRequest = describedBy<CreateSessionRequest>()(
  strictObject("CreateSessionRequest", {
    tags: array(string),
    userMetadata: required(record(json), { note: "never null; Python allows null" }),
    sdkVersion: string,
    projectId: optional(string, { since: "0.15.0" }),
    type: literal("create_session"),
  }),
);

/** A session was opened. */
export interface CreateSessionResponse extends KeepsUnknownFields {
  /** Marks the answer. */
  type: "create_session";
  /** A notice for the user. */
  infoMessage: string | null;
  /** A warning for the user. */
  warningMessage: string | null;
  /** An error for the user; the session is open all the same. */
  errorMessage: string | null;
  /** Id of the session. */
  sessionId: string;
}

export const CreateSessionResponse = describedBy<CreateSessionResponse>()(
  openObject("CreateSessionResponse", {
    type: literal("create_session"),
    infoMessage: optional(string),
    warningMessage: optional(string),
    errorMessage: optional(string),
    sessionId: string,
  }),
);

/** Says that the program is still there; without it the server ends the session. */
export interface SessionHeartbeatRequest {
  /** Id of the session. */
  sessionId: string;
  /** Marks the request. */
  type: "session_heartbeat";
}

export const SessionHeartbeatRequest = describedBy<SessionHeartbeatRequest>()(
  strictObject("SessionHeartbeatRequest", {
    sessionId: string,
    type: literal("session_heartbeat"),
  }),
);

/** The server heard it. */
export interface SessionHeartbeatResponse extends KeepsUnknownFields {
  /** Marks the answer. */
  type: "session_heartbeat";
}

export const SessionHeartbeatResponse = describedBy<SessionHeartbeatResponse>()(
  openObject("SessionHeartbeatResponse", {
    type: literal("session_heartbeat"),
  }),
);

/** Opens a sampling session: a name for weights to sample from. */
export interface CreateSamplingSessionRequest {
  /** The session it belongs to. */
  sessionId: string;
  /** Number within the session; the same number twice is the same sampling session. */
  samplingSessionSeqId: number;
  /** The base model; may be left out when `modelPath` says it. */
  baseModel: string | null;
  /** The saved weights on top of it. */
  modelPath: string | null;
  /** Marks the request. */
  type: "create_sampling_session";
}

export const CreateSamplingSessionRequest = describedBy<CreateSamplingSessionRequest>()(
  strictObject("CreateSamplingSessionRequest", {
    sessionId: string,
    samplingSessionSeqId: integer,
    baseModel: optional(string),
    modelPath: optional(string),
    type: literal("create_sampling_session"),
  }),
);

/** A sampling session was opened. */
export interface CreateSamplingSessionResponse extends KeepsUnknownFields {
  /** Marks the answer. */
  type: "create_sampling_session";
  /** Id of the sampling session. */
  samplingSessionId: string;
}

export const CreateSamplingSessionResponse = describedBy<CreateSamplingSessionResponse>()(
  openObject("CreateSamplingSessionResponse", {
    type: literal("create_sampling_session"),
    samplingSessionId: string,
  }),
);

/** The tokenizer files of a model. */
export interface GetTokenizerResponse extends KeepsUnknownFields {
  /** The model they belong to. */
  model: string;
  /** What `tokenizer.json` holds. */
  tokenizer: Record<string, unknown>;
  /** What `tokenizer_config.json` holds. */
  tokenizerConfig: Record<string, unknown> | null;
  /** The chat template, where it is a file of its own. */
  chatTemplate: string | null;
}

export const GetTokenizerResponse = describedBy<GetTokenizerResponse>()(
  openObject("GetTokenizerResponse", {
    model: string,
    tokenizer: required(record(json), {
      note: "an addition of this project, so that clients need no hub",
    }),
    tokenizerConfig: optional(record(json)),
    chatTemplate: optional(string),
  }),
);
