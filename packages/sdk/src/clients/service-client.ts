import { APIStatusError } from "../errors/api-error.js";
import { ArgumentError } from "../errors/argument-error.js";
import { CancelledError } from "../errors/tinker-error.js";
import { checkOptions } from "../errors/check-options.js";
import { ApiFuture } from "../futures/api-future.js";
import { Operation, operationOptions, type OperationOptions } from "../futures/operation.js";
import { readVariable } from "../runtime/environment.js";
import { createRuntime, runtimeOptions, type Runtime } from "../runtime/runtime.js";
import {
  connectionOptions,
  planConnection,
  type ConnectionPlan,
} from "../session/connection-plan.js";
import type { Connection } from "../session/connection.js";
import { consoleUrl } from "../session/console-url.js";
import type { ProcessWatch } from "../session/process-end.js";
import type { Session, SessionEnd } from "../session/session.js";
import type { ServerDescription } from "../session/describe-server.js";
import { noTelemetry } from "../telemetry/sink.js";
import { describeFacts, inspectSymbol } from "../types/inspect.js";
import type { SampleResponse } from "../types/sampling.js";
import type { GetServerCapabilitiesResponse } from "../types/service.js";
import { checkLoraConfig } from "../types/validate.js";
import type { WeightsInfoResponse } from "../types/weights.js";
import { bounded } from "./bounded.js";
import {
  closeOptions,
  copyWeightsOptions,
  fromStateOptions,
  loraOptions,
  samplingClientOptions,
  type CloseOptions,
  type CopyWeightsOptions,
  type CreateFromStateOptions,
  type CreateLoraTrainingClientOptions,
  type CreateSamplingClientOptions,
} from "./create-options.js";
import { RestClient } from "./rest-client.js";
import { completeRetryConfig } from "./sampling/retry-handler.js";
import type { SampleOptions, SamplingClient } from "./sampling-client.js";
import {
  checkSamplingSource,
  samplingSource,
  weightsPath,
  type SamplingSource,
} from "./sampling-source.js";
import { checkSampleCall } from "./sampling/sample-call.js";
import { serviceOptions, type ServiceClientOptions } from "./service-options.js";
import { SharedOpening } from "./shared-opening.js";
import type { TrainingClient } from "./training-client.js";
import { checkTinkerPath, checkTtl } from "./training/checkpoint-arguments.js";

/** A session and the functions that make clients in it; loaded together, so that making keeps the order of calls. */
interface OpenSession {
  readonly session: Session;
  readonly makers: typeof import("./training/make-training-client.js");
}

/**
 * The way into the API. Making one sends nothing: the connection is opened with the first call, a
 * session with the first training or sampling client.
 */
export class ServiceClient implements AsyncDisposable {
  readonly #options: ServiceClientOptions;
  readonly #runtime: Runtime;
  readonly #plan: ConnectionPlan;
  readonly #connection: SharedOpening<Connection>;
  readonly #session: SharedOpening<OpenSession>;
  readonly #closing = new AbortController();
  #processEnd: ProcessWatch | undefined;
  #closed: Promise<void> | undefined;
  #sessionId: string | undefined;

  constructor(options: ServiceClientOptions = {}) {
    checkOptions(options, [connectionOptions, runtimeOptions, serviceOptions]);
    const runtime = createRuntime(options);
    const plan = planConnection(options, runtime);
    this.#options = options;
    this.#runtime = runtime;
    this.#plan = plan;
    if (options.onEvent) runtime.events.subscribe(options.onEvent);
    const closing = this.#closing.signal;
    this.#connection = new SharedOpening((unwanted) =>
      openLazily(plan, AbortSignal.any([closing, unwanted])),
    );
    this.#session = new SharedOpening(async (unwanted) => {
      const signal = AbortSignal.any([closing, unwanted]);
      const connection = await this.#connection.get(signal);
      const makers = await import("./training/make-training-client.js");
      const { userMetadata, displayName } = options;
      const { projectId = readVariable(runtime.env, "TINKER_PROJECT_ID") } = options;
      const facts = { userMetadata, projectId, displayName };
      const session = await makers.openSession(connection, facts, signal);
      this.#sessionId = session.sessionId;
      // A client that was closed meanwhile would never stop watching.
      if (!closing.aborted) this.#processEnd ??= makers.watchProcessEnd((end) => this.close(end));
      return { makers, session };
    });
  }

  /** @internal */
  get runtime(): Runtime {
    return this.#runtime;
  }

  /** What the server offers. */
  async getServerCapabilities(
    options: OperationOptions = {},
  ): Promise<GetServerCapabilitiesResponse> {
    return this.#bounded("getServerCapabilities", options, async (signal) => {
      const connection = await this.#connection.get(signal);
      return bounded("getServerCapabilities", { signal }, connection, () =>
        connection.call("getServerCapabilities", null, { signal }),
      );
    });
  }

  /**
   * What the server is and can do: its endpoints, flags, and what it is known to leave out without a word. Makes
   * nothing at the server; asks for every endpoint once.
   */
  async describeServer(options: OperationOptions = {}): Promise<ServerDescription> {
    return this.#bounded("describeServer", options, async (signal) => {
      const connection = await this.#connection.get(signal);
      const { describeServer } = await import("../session/describe-server.js");
      return describeServer(connection, signal);
    });
  }

  /**
   * The address of the server's studio, where runs can be watched; null where there is none. Where a login is needed
   * it carries a code that logs in once, within a minute.
   */
  async getStudioUrl(options: OperationOptions = {}): Promise<string | null> {
    return this.#bounded("getStudioUrl", options, async (signal) => {
      const { findStudio } = await import("../session/find-studio.js");
      return findStudio(this.#plan, signal);
    });
  }

  /** Starts training a fresh LoRA adapter. */
  async createLoraTrainingClient(
    options: CreateLoraTrainingClientOptions,
  ): Promise<TrainingClient> {
    checkOptions(options, [loraOptions, operationOptions]);
    const { baseModel, userMetadata, rank = 32, seed } = options;
    const { trainMlp, trainAttn, trainUnembed } = options;
    if (typeof baseModel !== "string" || baseModel === "") {
      throw new ArgumentError("baseModel", "must name a model; getServerCapabilities lists them");
    }
    const loraConfig = checkLoraConfig(
      { rank, seed, trainMlp, trainAttn, trainUnembed },
      "options",
    );
    const model = { baseModel, loraConfig, userMetadata };
    return this.#inSession("createLoraTrainingClient", options, ({ session, makers }, signal) =>
      makers.makeTrainingClient(session, makers.createModel(session, model, { signal })),
    );
  }

  /** Continues training from a checkpoint, or from the last one in the folder of a run; the optimizer starts anew. */
  createTrainingClientFromState(
    path: string,
    options: CreateFromStateOptions = {},
  ): Promise<TrainingClient> {
    return this.#createFromState(path, false, options);
  }

  /** Goes on training from a checkpoint with the optimizer as it was. */
  createTrainingClientFromStateWithOptimizer(
    path: string,
    options: CreateFromStateOptions = {},
  ): Promise<TrainingClient> {
    return this.#createFromState(path, true, options);
  }

  /** A client that samples from saved weights or a base model. */
  async createSamplingClient(options: CreateSamplingClientOptions): Promise<SamplingClient> {
    checkOptions(options, [samplingSource, samplingClientOptions, operationOptions]);
    const { modelPath, retryConfig } = options;
    const source = modelPath
      ? { ...options, modelPath: await weightsPath(modelPath, "modelPath", "samplerPath") }
      : options;
    checkSamplingSource(source);
    completeRetryConfig(retryConfig);
    return this.#inSession("createSamplingClient", options, ({ session, makers }, signal) =>
      makers.createSamplingSession(session, source, { signal, retryConfig }),
    );
  }

  /**
   * Samples from a base model or saved weights that the request names itself: nothing is opened at the
   * server for it. For many samples from the same weights a sampling client is the better way.
   */
  sample(options: SampleOptions & SamplingSource): ApiFuture<SampleResponse> {
    checkSamplingSource(options);
    const call = checkSampleCall(options);
    const { modelPath, baseModel = "" } = options;
    const target = modelPath === undefined ? { baseModel } : { modelPath };
    const operation = new Operation("sample", modelPath ?? baseModel, this.#runtime);
    const context = { telemetry: noTelemetry, closed: this.#closing.signal };
    return ApiFuture.start(operation, options, context, async () => {
      const connection = await this.#connection.get(operation.signal);
      const { checkScores, samplerWithoutSession, withExtras } =
        await import("./sampling/sampler.js");
      const response = await samplerWithoutSession(connection, target).sample(call, operation);
      return withExtras(checkScores(call, response, operation), options.tokenizer);
    });
  }

  /** A client for runs, checkpoints, sessions and the account; opens no session. */
  createRestClient(): RestClient {
    const connect = (signal?: AbortSignal): Promise<Connection> => {
      this.#closing.signal.throwIfAborted();
      return this.#connection.get(signal);
    };
    return RestClient.over(connect, this.#runtime);
  }

  /** What it is connected to, for logs; never holds the key. */
  toJSON(): Readonly<Record<string, unknown>> {
    return { baseUrl: this.#plan.baseUrl };
  }

  /** How it is printed. */
  [inspectSymbol](): string {
    return describeFacts("ServiceClient", this.toJSON());
  }

  /**
   * Copies a checkpoint, a training one or a sampler's, into a run of its own that cannot be trained; returns the
   * path of the copy. The copy shares the stored files and stays when the source is deleted.
   */
  async copyWeights(path: string, options: CopyWeightsOptions = {}): Promise<string> {
    checkTinkerPath(path);
    checkOptions(options, [copyWeightsOptions, operationOptions]);
    const { ttlSeconds, weightsAccessToken } = options;
    checkTtl(ttlSeconds);
    return this.#inSession("copyWeights", options, async ({ session }, signal) => {
      const copy = { sourcePath: path, ttlSeconds, weightsAccessToken };
      const modelSeqId = session.nextModelSeqId();
      const request = { sessionId: session.sessionId, modelSeqId, ...copy };
      return (await session.call("copyWeights", request, { signal })).tinkerPath;
    });
  }

  /**
   * The page of this client's session in the console of the hosted service, or of all sessions before one is open;
   * null for other servers. Those of this project have a studio, see `getStudioUrl`.
   */
  getConsoleUrl(): string | null {
    return consoleUrl(this.#plan, "sessions", this.#sessionId);
  }

  /**
   * Runs a program and closes the client with how it ended: `errored` with the message when it throws,
   * `interrupted` when it was cancelled or a signal ended it, else `success`.
   */
  async run<T>(program: (service: this) => T | PromiseLike<T>): Promise<T> {
    let result: T;
    try {
      result = await program(this);
    } catch (error) {
      await this.close(this.#processEnd?.seen ?? outcomeOf(error));
      throw error;
    }
    await this.close();
    return result;
  }

  /**
   * Ends everything under way, finishes the session at the server, and frees sockets and timers. What the server
   * has accepted is still carried out there, apart from samples where it lets them be cancelled. Never fails: a
   * server that cannot be reached ends the session by itself.
   */
  close(options: CloseOptions = {}): Promise<void> {
    checkOptions(options, [closeOptions]);
    const { status = "success" } = options;
    if (!["success", "errored", "interrupted"].includes(status)) {
      throw new ArgumentError("status", "must be success, errored or interrupted");
    }
    const seen = options.status === undefined ? this.#processEnd?.seen : undefined;
    return (this.#closed ??= this.#end(seen ?? { ...options, status }));
  }

  /** Closes the client at the end of an `await using` block, as a success: a disposer is given no error. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(end: SessionEnd): Promise<void> {
    this.#processEnd?.stop();
    this.#closing.abort(new CancelledError("The client was closed."));
    const [opened, connection] = await Promise.allSettled([
      this.#session.current?.wait(),
      this.#connection.current?.wait(),
    ]);
    const { session, makers } = (opened.status === "fulfilled" && opened.value) || {};
    const isOpen = session?.hasEnded === false;
    session?.stop();
    if (connection.status === "rejected") return;
    await connection.value?.close(async (signal) => {
      if (isOpen) await makers?.finishSession(session, end, signal);
    });
  }

  async #createFromState(
    given: string,
    optimizer: boolean,
    options: CreateFromStateOptions,
  ): Promise<TrainingClient> {
    const path = await weightsPath(given, "path", "statePath");
    checkOptions(options, [fromStateOptions, operationOptions]);
    const { baseModel, userMetadata, weightsAccessToken } = options;
    const model = { path, optimizer, baseModel, userMetadata, weightsAccessToken };
    return this.#inSession("createTrainingClientFromState", options, (opened, signal) => {
      const describe = () => this.#describeWeights(path, weightsAccessToken, signal);
      return opened.makers.makeTrainingClientFromState(opened.session, model, describe, signal);
    });
  }

  /** Reads the description of another owner's weights with that owner's credential. */
  async #describeWeights(
    path: string,
    weightsAccessToken: string | undefined,
    signal: AbortSignal,
  ): Promise<WeightsInfoResponse> {
    const own = this.createRestClient();
    if (weightsAccessToken === undefined) {
      return own.getWeightsInfoByTinkerPath(path, { signal });
    }
    const owner = new ServiceClient({ ...this.#options, apiKey: weightsAccessToken });
    try {
      return await owner.createRestClient().getWeightsInfoByTinkerPath(path, { signal });
    } finally {
      await owner.close();
    }
  }

  /**
   * Runs `use` with a session that has not ended, without a pause after looking at that. When the
   * server turns out to have ended it, which shows in what it refuses, a new one is opened.
   */
  #inSession<T>(
    what: string,
    options: OperationOptions,
    use: (opened: OpenSession, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.#bounded(what, options, async (signal) => {
      for (let isFirst = true; ; isFirst = false) {
        const opening = this.#session.get(signal);
        const current = this.#session.current;
        const opened = await opening;
        const { session } = opened;
        try {
          if (!session.hasEnded) return await use(opened, signal);
        } catch (error) {
          const mayHaveEnded = isFirst && !signal.aborted && isAboutSomethingGone(error);
          if (!mayHaveEnded || !(await session.checkEnded())) throw error;
        }
        session.stop();
        this.#session.forget(current);
      }
    });
  }

  // Errors are reported by what runs inside; before a connection is open they cannot be reported.
  #bounded<T>(
    what: string,
    options: OperationOptions,
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const context = {
      runtime: this.#runtime,
      telemetry: noTelemetry,
      closed: this.#closing.signal,
    };
    return bounded(what, options, context, call);
  }
}

/** How a program ended that threw; a cancelled one did not fail. */
function outcomeOf(error: unknown): SessionEnd {
  const isCancelled =
    error instanceof CancelledError || (error instanceof Error && error.name === "AbortError");
  const detail = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { status: isCancelled ? "interrupted" : "errored", detail };
}

function isAboutSomethingGone(error: unknown): boolean {
  return error instanceof APIStatusError && (error.status === 404 || error.status === 410);
}

/** Loaded with the first call, so that importing the package stays cheap. */
async function openLazily(plan: ConnectionPlan, signal: AbortSignal): Promise<Connection> {
  const { openConnection } = await import("../session/open-connection.js");
  return openConnection(plan, { signal });
}
