import {
  restOptions,
  type PageOptions,
  type AuditLogOptions,
  type BillingUsageOptions,
  type DownloadCheckpointOptions,
  type DownloadTraceOptions,
  type ListTrainingRunsOptions,
  type ScopeOptions,
  type UploadCheckpointOptions,
} from "./rest-options.js";
import type { DownloadedCheckpoint } from "../checkpoints/download-checkpoint.js";
import type { DownloadedFile } from "../checkpoints/download-file.js";
import { ArgumentError } from "../errors/argument-error.js";
import { checkOptions } from "../errors/check-options.js";
import type { OperationOptions } from "../futures/operation.js";
import type { Runtime } from "../runtime/runtime.js";
import type { Connection } from "../session/connection.js";
import { noTelemetry } from "../telemetry/sink.js";
import type { CallOptions, RequestOf, ResponseOf } from "../transport/api.js";
import type { BillingUsageResponse } from "../types/billing.js";
import { CheckpointPath } from "../types/checkpoint-path.js";
import type {
  AuditLogResponse,
  Checkpoint,
  CheckpointsListResponse,
  GetSessionResponse,
  ListSessionsResponse,
  TrainingRun,
  TrainingRunsResponse,
  WhoamiResponse,
} from "../types/runs.js";
import type { GetSamplerResponse } from "../types/sampling.js";
import type {
  CheckpointArchiveUrlResponse,
  ExternalWeightsUrlsResponse,
  WeightsInfoResponse,
} from "../types/weights.js";
import type { LogsAnswer } from "../wire/log-lines.js";
import type { RouteName } from "../wire/routes.js";
import { bounded } from "./bounded.js";
import { checkTtl } from "./training/checkpoint-arguments.js";

/** Looks after runs, checkpoints, sessions and the account. Made by a `ServiceClient`. */
export class RestClient {
  readonly #connect: (signal?: AbortSignal) => Promise<Connection>;
  readonly #runtime: Runtime;

  private constructor(connect: (signal?: AbortSignal) => Promise<Connection>, runtime: Runtime) {
    this.#connect = connect;
    this.#runtime = runtime;
  }

  /**
   * A client over a connection that is opened with the first call.
   * @internal
   */
  static over(
    connect: (signal?: AbortSignal) => Promise<Connection>,
    runtime: Runtime,
  ): RestClient {
    return new RestClient(connect, runtime);
  }

  /** One training run. */
  async getTrainingRun(trainingRunId: string, options: ScopeOptions = {}): Promise<TrainingRun> {
    return this.#call("getTrainingRun", null, options, {
      params: { trainingRunId },
      query: scope(options),
    });
  }

  /** The run that a checkpoint belongs to. */
  async getTrainingRunByTinkerPath(path: string, options: ScopeOptions = {}): Promise<TrainingRun> {
    return this.getTrainingRun(CheckpointPath.parse(path).trainingRunId, options);
  }

  /** What a checkpoint was trained as; works for public checkpoints of others too. */
  async getWeightsInfoByTinkerPath(
    path: string,
    options: OperationOptions = {},
  ): Promise<WeightsInfoResponse> {
    return this.#call("weightsInfo", { tinkerPath: path }, options);
  }

  /** Training runs, newest first; 20 by default. */
  async listTrainingRuns(options: ListTrainingRunsOptions = {}): Promise<TrainingRunsResponse> {
    return this.#call("listTrainingRuns", null, options, {
      query: { ...page(options, 20), ...scope(options), projectId: options.projectId },
    });
  }

  /** Training runs one by one, newest first, up to `limit` or all; asks page by page. */
  trainingRuns(options: ListTrainingRunsOptions = {}): AsyncGenerator<TrainingRun, undefined> {
    return eachOf(options, async (part) => {
      const { trainingRuns, cursor } = await this.listTrainingRuns({ ...options, ...part });
      return { items: trainingRuns, totalCount: cursor?.totalCount };
    });
  }

  /** The caller's checkpoints one by one, newest first, up to `limit` or all; asks page by page. */
  userCheckpoints(options: PageOptions = {}): AsyncGenerator<Checkpoint, undefined> {
    return eachOf(options, async (part) => {
      const { checkpoints, cursor } = await this.listUserCheckpoints({ ...options, ...part });
      return { items: checkpoints, totalCount: cursor?.totalCount };
    });
  }

  /** Session ids one by one, newest first, up to `limit` or all; asks page by page. */
  sessions(options: PageOptions & ScopeOptions = {}): AsyncGenerator<string, undefined> {
    return eachOf(options, async (part) => {
      const { sessions } = await this.listSessions({ ...options, ...part });
      return { items: sessions };
    });
  }

  /** Every checkpoint of a run. */
  async listCheckpoints(
    trainingRunId: string,
    options: OperationOptions = {},
  ): Promise<CheckpointsListResponse> {
    return this.#call("listCheckpoints", null, options, { params: { trainingRunId } });
  }

  /** The caller's checkpoints, newest first; 100 by default. */
  async listUserCheckpoints(options: PageOptions = {}): Promise<CheckpointsListResponse> {
    return this.#call("listUserCheckpoints", null, options, { query: page(options, 100) });
  }

  /** Where to download a checkpoint from; waits while the server packs it. */
  async getCheckpointArchiveUrl(
    trainingRunId: string,
    checkpointId: string,
    options: OperationOptions = {},
  ): Promise<CheckpointArchiveUrlResponse> {
    const params = { trainingRunId, checkpointId };
    return this.#with("getCheckpointArchiveUrl", options, async (connection, signal) => {
      const { archiveUrl } = await import("./rest/requests.js");
      return archiveUrl(connection, params, signal);
    });
  }

  /** Where to download a checkpoint from; waits while the server packs it. */
  async getCheckpointArchiveUrlFromTinkerPath(
    path: string,
    options: OperationOptions = {},
  ): Promise<CheckpointArchiveUrlResponse> {
    const { trainingRunId, checkpointId } = CheckpointPath.parse(path);
    return this.getCheckpointArchiveUrl(trainingRunId, checkpointId, options);
  }

  /** Downloads and unpacks a checkpoint into a folder, which appears as a whole or not at all. */
  async downloadCheckpoint(
    path: string,
    options: DownloadCheckpointOptions,
  ): Promise<DownloadedCheckpoint> {
    const { directory, overwrite = false, onProgress = () => {} } = options;
    if (!directory) throw new ArgumentError("directory", "must name the folder to make");
    CheckpointPath.parse(path);
    return this.#with("downloadCheckpoint", options, async (connection, signal) => {
      const { downloadCheckpointTo } = await import("../checkpoints/download-checkpoint.js");
      const getUrl = async () =>
        (await this.getCheckpointArchiveUrlFromTinkerPath(path, { signal })).url;
      return downloadCheckpointTo(connection, getUrl, { directory, overwrite, onProgress }, signal);
    });
  }

  /**
   * Uploads the files of a PEFT adapter as a checkpoint of a run of one's own. An addition of this
   * project's server; others answer 404 or 405.
   */
  async uploadCheckpoint(path: string, options: UploadCheckpointOptions): Promise<void> {
    const { directory, onProgress = () => {} } = options;
    if (!directory) throw new ArgumentError("directory", "must name the folder of the adapter");
    const params = checkpointParams(path);
    await this.#with("uploadCheckpoint", options, async (connection, signal) => {
      const { uploadCheckpoint } = await import("../checkpoints/upload-checkpoint.js");
      return uploadCheckpoint(connection, { directory, params, onProgress }, signal);
    });
  }

  /** Deletes a checkpoint for good. */
  async deleteCheckpoint(
    trainingRunId: string,
    checkpointId: string,
    options: OperationOptions = {},
  ): Promise<void> {
    const params = { trainingRunId, checkpointId };
    await this.#call("deleteCheckpoint", null, options, { params });
  }

  /** Deletes a checkpoint, by its whole address, for good. */
  async deleteCheckpointFromTinkerPath(
    path: string,
    options: OperationOptions = {},
  ): Promise<void> {
    await this.#call("deleteCheckpoint", null, options, { params: checkpointParams(path) });
  }

  /** Publishes a checkpoint; a `ConflictError` means that it is public already. */
  async publishCheckpointFromTinkerPath(
    path: string,
    options: OperationOptions = {},
  ): Promise<void> {
    await this.#callOnConflictAtOnce("publishCheckpoint", path, options);
  }

  /** Unpublishes a checkpoint; a `ConflictError` means that it is private already. */
  async unpublishCheckpointFromTinkerPath(
    path: string,
    options: OperationOptions = {},
  ): Promise<void> {
    await this.#callOnConflictAtOnce("unpublishCheckpoint", path, options);
  }

  /** Lets a checkpoint expire after so many seconds from now; null keeps it for good. */
  async setCheckpointTtlFromTinkerPath(
    path: string,
    ttlSeconds: number | null,
    options: OperationOptions = {},
  ): Promise<void> {
    if (ttlSeconds === undefined) {
      throw new ArgumentError("ttlSeconds", "pass a number of seconds, or null for no expiry");
    }
    checkTtl(ttlSeconds);
    const params = checkpointParams(path);
    await this.#call("setCheckpointTtl", { ttlSeconds }, options, { params });
  }

  /** What a session made. */
  async getSession(sessionId: string, options: ScopeOptions = {}): Promise<GetSessionResponse> {
    return this.#call("getSession", null, options, {
      params: { sessionId },
      query: scope(options),
    });
  }

  /** Session ids, newest first; 20 by default. */
  async listSessions(options: PageOptions & ScopeOptions = {}): Promise<ListSessionsResponse> {
    return this.#call("listSessions", null, options, {
      query: { ...page(options, 20), ...scope(options) },
    });
  }

  /** Moves a session to a project. */
  async assignSessionProject(
    sessionId: string,
    projectId: string,
    options: OperationOptions = {},
  ): Promise<void> {
    if (!projectId) throw new ArgumentError("projectId", "must not be empty");
    await this.#call("assignSessionProject", { projectId }, options, { params: { sessionId } });
  }

  /** Lets the server write a trace of a session; resolves to where it can be downloaded. */
  async exportSessionTrace(sessionId: string, options: OperationOptions = {}): Promise<string> {
    return this.#with("exportSessionTrace", options, async (connection, signal) => {
      const { exportTrace } = await import("./rest/requests.js");
      return exportTrace(connection, sessionId, signal);
    });
  }

  /** Lets the server write a trace of a session and downloads it to a file. */
  async downloadSessionTrace(
    sessionId: string,
    options: DownloadTraceOptions,
  ): Promise<DownloadedFile> {
    const { file, onProgress = () => {} } = options;
    if (!file) throw new ArgumentError("file", "must name the file to write");
    return this.#with("downloadSessionTrace", options, async (connection, signal) => {
      const { downloadTo } = await import("../checkpoints/download-file.js");
      const getUrl = () => this.exportSessionTrace(sessionId, { signal });
      return downloadTo(connection, getUrl, { file, onProgress }, signal);
    });
  }

  /** What a sampler samples from. */
  async getSampler(samplerId: string, options: OperationOptions = {}): Promise<GetSamplerResponse> {
    return this.#call("getSampler", null, options, { params: { samplerId } });
  }

  /** Addresses of the files of external weights, by their names; where the server offers that. */
  async getExternalWeightsUrls(
    path: string,
    options: OperationOptions = {},
  ): Promise<ExternalWeightsUrlsResponse> {
    return this.#with("getExternalWeightsUrls", options, async (connection, signal) => {
      const { externalUrls } = await import("./external-weights.js");
      return externalUrls(connection, path, signal);
    });
  }

  /** Who did what on a day; needs an administrator's key. */
  async getAuditLog(options: AuditLogOptions = {}): Promise<AuditLogResponse> {
    const { eventType = "all", day } = options;
    if (day !== undefined && !/^\d{4}-\d\d-\d\d$/.test(day)) {
      throw new ArgumentError("day", `must be YYYY-MM-DD, got ${JSON.stringify(day)}`);
    }
    return this.#call("getAuditLog", null, options, { query: { eventType, day } });
  }

  /** What was used, hour by hour. */
  async getBillingUsage(options: BillingUsageOptions): Promise<BillingUsageResponse> {
    const { billingWindow } = await import("./rest/requests.js");
    return this.#call("getBillingUsage", null, options, { query: billingWindow(options) });
  }

  /** The owner of the key, read from the credential without a request. */
  async whoami(options: OperationOptions = {}): Promise<WhoamiResponse> {
    return this.#with("whoami", options, async (connection) => {
      const { identityOf } = await import("./rest/requests.js");
      return identityOf(connection);
    });
  }

  /**
   * Sends lines of JSON about a run to a server of this project, which shows them in its studio; `RunLog` does
   * it by itself. Sent once: the caller decides what to send again.
   */
  async postLogs(lines: string, options: OperationOptions = {}): Promise<LogsAnswer> {
    return this.#with("postLogs", options, async (connection, signal) => {
      const { postLogs } = await import("./rest/requests.js");
      return postLogs(connection, lines, signal);
    });
  }

  /** Throws a conflict at once: here it is not a lock that will go away. */
  async #callOnConflictAtOnce(
    name: "publishCheckpoint" | "unpublishCheckpoint",
    path: string,
    options: OperationOptions,
  ): Promise<void> {
    const params = checkpointParams(path);
    await this.#with(name, options, (connection, signal) =>
      connection.call(name, null, { params, signal, retriesConflicts: false }),
    );
  }

  #call<N extends RouteName>(
    name: N,
    request: RequestOf<N>,
    options: OperationOptions,
    details: Pick<CallOptions, "params" | "query"> = {},
  ): Promise<ResponseOf<N>> {
    return this.#with(name, options, (connection, signal) =>
      connection.call(name, request, { ...details, signal }),
    );
  }

  #with<T>(
    what: string,
    options: OperationOptions,
    call: (connection: Connection, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    checkOptions(options, restOptions);
    const context = { runtime: this.#runtime, telemetry: noTelemetry, closed: neverClosed };
    return bounded(what, options, context, async (signal) => {
      const connection = await this.#connect(signal);
      return bounded(what, { signal }, connection, (inner) => call(connection, inner));
    });
  }
}

/** The signal of a connection that is not open yet, so that nothing can be closed. */
const neverClosed = new AbortController().signal;

function checkpointParams(path: string): { trainingRunId: string; checkpointId: string } {
  const { trainingRunId, checkpointId } = CheckpointPath.parse(path);
  return { trainingRunId, checkpointId };
}

function scope({ accessScope = "owned" }: ScopeOptions): { readonly accessScope: string } {
  if (accessScope === "owned" || accessScope === "accessible") return { accessScope };
  throw new ArgumentError("accessScope", 'must be "owned" or "accessible"');
}

function page({ limit, offset = 0 }: PageOptions, defaultLimit: number) {
  const bounds = { limit: limit ?? defaultLimit, offset };
  for (const [name, value] of Object.entries(bounds)) {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new ArgumentError(name, `must be a whole number of 0 or more, got ${value}`);
    }
  }
  return bounds;
}

const pageSize = 100;

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Number of all items, where the server reports it. */
  readonly totalCount?: number | undefined;
}

/**
 * The items of a list one by one, fetched page by page as they are read. A short page, or the total where
 * the server sends it, ends the list.
 */
export async function* eachOf<T>(
  { limit = Number.POSITIVE_INFINITY, offset = 0 }: PageOptions,
  getPage: (page: { readonly limit: number; readonly offset: number }) => Promise<Page<T>>,
): AsyncGenerator<T, undefined> {
  for (let count = 0; count < limit;) {
    const size = Math.min(pageSize, limit - count);
    const { items, totalCount } = await getPage({ limit: size, offset: offset + count });
    yield* items;
    count += items.length;
    const isEnd = totalCount === undefined ? items.length < size : offset + count >= totalCount;
    if (isEnd || items.length === 0) return undefined;
  }
  return undefined;
}
