import type { WireTypeName } from "./wire-types.js";

/** Kinds of work that have connections of their own, so that none can starve another. */
export type Pool =
  | "session"
  | "sample"
  | "train"
  | "redirect"
  | "retrieve"
  | "telemetry"
  | "setup"
  | "storage";

/**
 * How a failed call is repeated.
 *
 * - `http`: a row of quick tries, with pauses between rows where the client goes on.
 * - `outer`: no quick tries, only the pauses.
 */
export type RetryClass = "http" | "outer";

/** One endpoint of the API. */
export interface Route {
  /** The HTTP method. */
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path with `{name}` parameters, which are inserted verbatim: checkpoint ids contain slashes. */
  readonly path: string;
  /** The type of the body, or null when there is none. */
  readonly request: WireTypeName | null;
  /** The type of the immediate answer, or null when its body carries nothing. */
  readonly response: WireTypeName | null;
  /** The type that the future of an `UntypedAPIFuture` answer resolves to. */
  readonly result?: WireTypeName;
  /** Names of the query parameters. */
  readonly query?: readonly string[];
  /** The kind of work it is. */
  readonly pool: Pool;
  /** How it is repeated when it fails. */
  readonly retry: RetryClass;
  /** Replaces the default timeouts (connect 5 s, everything else 60 s). */
  readonly timeoutMs?: number;
  /** Most bytes that a client reads of an answer, packed or not; 64 MiB by default. */
  readonly maxAnswerBytes?: number;
  /** The first official client that calls it, where 0.25 does not. */
  readonly since?: string;
}

const longList = { maxAnswerBytes: 2 ** 28 } as const;
const defaults = { pool: "train", retry: "http" } as const;
const run = "/api/v1/training_runs/{trainingRunId}";
const checkpoint = `${run}/checkpoints/{checkpointId}`;
const session = "/api/v1/sessions/{sessionId}";

/** Every endpoint, by the name the client and the server share. */
export const routes = {
  healthz: get("/api/v1/healthz", "HealthResponse"),
  getServerCapabilities: get("/api/v1/get_server_capabilities", "GetServerCapabilitiesResponse"),
  clientConfig: post("client/config", "ClientConfigRequest", "ClientConfigResponse", {
    pool: "setup",
  }),
  clientDynamicConfig: post(
    "client/dynamic_config",
    "ClientConfigRequest",
    "ClientDynamicConfigResponse",
    { pool: "session", retry: "outer", timeoutMs: 10_000 },
  ),
  authToken: post("auth/token", "AuthTokenRequest", "AuthTokenResponse", { pool: "setup" }),
  createSession: post("create_session", "CreateSessionRequest", "CreateSessionResponse", {
    pool: "session",
  }),
  sessionHeartbeat: post(
    "session_heartbeat",
    "SessionHeartbeatRequest",
    "SessionHeartbeatResponse",
    { pool: "session", retry: "outer", timeoutMs: 10_000 },
  ),
  finishSession: {
    ...plain("POST", `${session}/finish`, "FinishSessionRequest"),
    pool: "session",
    since: "0.29.1",
  },
  getApiKey: get("/api/v1/auth/apikey/me", "ApiKeyResponse", { pool: "setup", since: "0.26.0" }),
  createModel: future("create_model", "CreateModelRequest", "CreateModelResponse"),
  getInfo: post("get_info", "GetInfoRequest", "GetInfoResponse"),
  unloadModel: future("unload_model", "UnloadModelRequest", "UnloadModelResponse"),
  forwardBackward: future("forward_backward", "ForwardBackwardRequest", "ForwardBackwardOutput"),
  forward: future("forward", "ForwardRequest", "ForwardBackwardOutput"),
  optimStep: future("optim_step", "OptimStepRequest", "OptimStepResponse"),
  saveWeights: future("save_weights", "SaveWeightsRequest", "SaveWeightsResponse", {
    retry: "outer",
  }),
  saveWeightsForSampler: future(
    "save_weights_for_sampler",
    "SaveWeightsForSamplerRequest",
    "SaveWeightsForSamplerResponseInternal",
    { retry: "outer" },
  ),
  loadWeights: future("load_weights", "LoadWeightsRequest", "LoadWeightsResponse"),
  copyWeights: post("copy_weights", "CopyWeightsRequest", "CopyWeightsResponse", {
    since: "0.26.0",
  }),
  createSamplingSession: post(
    "create_sampling_session",
    "CreateSamplingSessionRequest",
    "CreateSamplingSessionResponse",
    { pool: "session" },
  ),
  joinSamplingSession: post(
    "join_sampling_session",
    "JoinSamplingSessionRequest",
    "JoinSamplingSessionResponse",
    { pool: "session", since: "0.32.0" },
  ),
  sample: future("asample", "SampleRequest", "SampleResponse", { pool: "sample", retry: "outer" }),
  // An addition of this project: the answer is a line of JSON per token, then the SampleResponse.
  streamSample: {
    ...plain("POST", "/api/v1/stream_sample", "SampleRequest"),
    pool: "sample",
    retry: "outer",
    // The first token may have to wait for its turn.
    timeoutMs: 300_000,
  },
  retrieveFuture: post("retrieve_future", "FutureRetrieveRequest", "FutureRetrieveResponse", {
    pool: "retrieve",
    retry: "outer",
    timeoutMs: 45_000,
    maxAnswerBytes: 2 ** 29,
  }),
  retrieveFutures: post("retrieve_futures", "FuturesRetrieveRequest", "FuturesRetrieveResponse", {
    pool: "retrieve",
    retry: "outer",
    timeoutMs: 45_000,
    since: "0.26.0",
  }),
  cancelFuture: {
    ...plain("POST", "/api/v1/cancel_future", "CancelFutureRequest"),
    pool: "session",
    since: "0.26.0",
  },
  telemetry: post("telemetry", "TelemetrySendRequest", "TelemetryResponse", {
    pool: "telemetry",
    timeoutMs: 5_000,
  }),
  listTrainingRuns: get("/api/v1/training_runs", "TrainingRunsResponse", {
    query: ["limit", "offset", "access_scope", "project_id"],
  }),
  getTrainingRun: get(run, "TrainingRun", { query: ["access_scope"] }),
  listCheckpoints: get(`${run}/checkpoints`, "CheckpointsListResponse"),
  deleteCheckpoint: plain("DELETE", checkpoint, null),
  getCheckpointArchiveUrl: get(`${checkpoint}/archive`, "CheckpointArchiveUrlResponse", {
    pool: "redirect",
  }),
  publishCheckpoint: plain("POST", `${checkpoint}/publish`, null),
  unpublishCheckpoint: plain("DELETE", `${checkpoint}/publish`, null),
  setCheckpointTtl: plain("PUT", `${checkpoint}/ttl`, "SetCheckpointTtlRequest"),
  listUserCheckpoints: get("/api/v1/checkpoints", "CheckpointsListResponse", {
    query: ["limit", "offset"],
    ...longList,
  }),
  weightsInfo: post("weights_info", "WeightsInfoRequest", "WeightsInfoResponse"),
  listSessions: get("/api/v1/sessions", "ListSessionsResponse", {
    query: ["limit", "offset", "access_scope"],
  }),
  getSession: get(session, "GetSessionResponse", { query: ["access_scope"] }),
  assignSessionProject: plain("PUT", `${session}/project`, "AssignSessionProjectRequest"),
  exportSessionTrace: get(`${session}/trace_export`, "TraceExportResponse"),
  getSampler: get("/api/v1/samplers/{samplerId}", "GetSamplerResponse"),
  getAuditLog: get("/api/v1/audit", "AuditLogResponse", {
    query: ["event_type", "day"],
    pool: "redirect",
    ...longList,
  }),
  getBillingUsage: get("/api/v1/billing/usage/events", "BillingUsageResponse", {
    query: ["starting_on", "ending_before"],
    ...longList,
  }),
  getTokenizer: get("/api/v1/tokenizer", "GetTokenizerResponse", { query: ["model"], ...longList }),
} as const satisfies Record<string, Route>;

/** The name of an endpoint. */
export type RouteName = keyof typeof routes;

type Extra = Partial<
  Pick<Route, "query" | "pool" | "retry" | "timeoutMs" | "maxAnswerBytes" | "since">
>;
type Base = { readonly pool: Pool; readonly retry: RetryClass } & Extra;

function get<const R extends WireTypeName>(path: string, response: R, extra: Extra = {}) {
  const base: Base = { ...defaults, ...extra };
  return { method: "GET" as const, path, request: null, response, ...base };
}

function post<const Q extends WireTypeName, const R extends WireTypeName>(
  name: string,
  request: Q,
  response: R,
  extra: Extra = {},
) {
  const base: Base = { ...defaults, ...extra };
  return { method: "POST" as const, path: `/api/v1/${name}`, request, response, ...base };
}

function future<const Q extends WireTypeName, const R extends WireTypeName>(
  name: string,
  request: Q,
  result: R,
  extra: Extra = {},
) {
  return { ...post(name, request, "UntypedAPIFuture", extra), result };
}

function plain<const Q extends WireTypeName | null>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  request: Q,
) {
  const base: Base = defaults;
  return { method, path, request, response: null, ...base };
}
