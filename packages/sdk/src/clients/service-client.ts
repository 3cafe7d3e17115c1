import { APIStatusError } from "../errors/api-error.js";
import { ArgumentError } from "../errors/argument-error.js";
import { CancelledError } from "../errors/tinker-error.js";
import { checkOptions, needed, option, type OptionsOf } from "../errors/check-options.js";
import { ApiFuture } from "../futures/api-future.js";
import { Operation, operationOptions, type OperationOptions } from "../futures/operation.js";
import type { Cancellation } from "../runtime/cancellation.js";
import { readVariable } from "../runtime/environment.js";
import { createRuntime, runtimeOptions, type Runtime } from "../runtime/runtime.js";
import { SharedWork } from "../runtime/shared-work.js";
import {
  connectionOptions,
  planConnection,
  type ConnectionPlan,
} from "../session/connection-plan.js";
import type { Connection } from "../session/connection.js";
import type { Session } from "../session/session.js";
import { noTelemetry } from "../telemetry/sink.js";
import { describeFacts, inspectSymbol } from "../types/inspect.js";
import type { SampleResponse } from "../types/sampling.js";
import type { GetServerCapabilitiesResponse } from "../types/service.js";
import { checkLoraConfig } from "../types/validate.js";
import type { WeightsInfoResponse } from "../types/weights.js";
import { bounded } from "./bounded.js";
import type { UserMetadata } from "./training/make-training-client.js";
import { RestClient } from "./rest-client.js";
import { completeRetryConfig, type RetryConfig } from "./retry-config.js";
import type { SampleOptions, SamplingClient } from "./sampling-client.js";
import { checkSamplingSource, samplingSource, type SamplingSource } from "./sampling-source.js";
import { checkSampleCall } from "./sampling/sample-call.js";
import { serviceOptions, type ServiceClientOptions } from "./service-options.js";
import type { TrainingClient } from "./training-client.js";
import { checkTinkerPath } from "./training/checkpoint-arguments.js";

const loraOptions = {
  /** The name of a model that the server supports. */
  baseModel: needed<string>(),
  /**
   * Rank of the adapter: how much it can learn, and its size.
   * @default 32
   */
  rank: option<number>(),
  /** Makes the adapter's first weights repeatable. */
  seed: option<number | bigint>(),
  /**
   * Whether the feed-forward layers are adapted.
   * @default true
   */
  trainMlp: option<boolean>(),
  /**
   * Whether the attention layers are adapted.
   * @default true
   */
  trainAttn: option<boolean>(),
  /**
   * Whether the output layer is adapted.
   * @default true
   */
  trainUnembed: option<boolean>(),
  /** Facts about the run, kept with it. */
  userMetadata: option<UserMetadata>(),
};

/** What kind of adapter to train, and on which model. */
export interface CreateLoraTrainingClientOptions
  extends OperationOptions, OptionsOf<typeof loraOptions> {}

const fromStateOptions = {
  /** Another model of the same shape, such as one with a longer context. */
  baseModel: option<string>(),
  /** Facts about the new run, kept with it. */
  userMetadata: option<UserMetadata>(),
  /** A credential of the checkpoint's owner, when the caller is not the owner. */
  weightsAccessToken: option<string>(),
};

/** How training goes on from a checkpoint. */
export interface CreateFromStateOptions
  extends OperationOptions, OptionsOf<typeof fromStateOptions> {}

const samplingClientOptions = {
  /** How samples are tried again. */
  retryConfig: option<RetryConfig>(),
};

/** What to sample from, and how. */
export interface CreateSamplingClientOptions
  extends OperationOptions, SamplingSource, OptionsOf<typeof samplingClientOptions> {}

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
      const { userMetadata, projectId = readVariable(runtime.env, "TINKER_PROJECT_ID") } = options;
      const session = await makers.openSession(connection, { userMetadata, projectId }, signal);
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

  /** Goes on training from a checkpoint; the optimizer starts anew. */
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
    checkSamplingSource(options);
    const { retryConfig } = options;
    completeRetryConfig(retryConfig);
    return this.#inSession("createSamplingClient", options, ({ session, makers }, signal) =>
      makers.createSamplingSession(session, options, { signal, retryConfig }),
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

  /** Ends everything under way and frees sockets and timers; the server notices by itself. */
  async close(): Promise<void> {
    this.#closing.abort(new CancelledError("The client was closed."));
    const [session, connection] = await Promise.allSettled([
      this.#session.current?.wait(),
      this.#connection.current?.wait(),
    ]);
    if (session.status === "fulfilled") session.value?.session.stop();
    if (connection.status === "fulfilled") await connection.value?.close();
  }

  /** Closes the client at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #createFromState(
    path: string,
    optimizer: boolean,
    options: CreateFromStateOptions,
  ): Promise<TrainingClient> {
    checkTinkerPath(path);
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

function isAboutSomethingGone(error: unknown): boolean {
  return error instanceof APIStatusError && (error.status === 404 || error.status === 410);
}

/** Loaded with the first call, so that importing the package stays cheap. */
async function openLazily(plan: ConnectionPlan, signal: AbortSignal): Promise<Connection> {
  const { openConnection } = await import("../session/open-connection.js");
  return openConnection(plan, { signal });
}

/**
 * Something that the first caller opens and later callers share. A caller that cancels
 * does not spoil it for the others; when all have, the opening ends. One that failed or ended is begun
 * anew by the next.
 */
class SharedOpening<T> {
  readonly #open: (signal: AbortSignal) => Promise<T>;
  #opening: SharedWork<T> | undefined;

  constructor(open: (signal: AbortSignal) => Promise<T>) {
    this.#open = open;
  }

  /** What is open or being opened; undefined when nothing is. */
  get current(): SharedWork<T> | undefined {
    return this.#opening;
  }

  get(signal?: Cancellation): Promise<T> {
    if (!this.#opening || this.#opening.isGivenUp) this.#opening = this.#begin();
    return this.#opening.wait(signal);
  }

  /** Has the next caller open it again, unless another caller already has. */
  forget(opening: SharedWork<T> | undefined): void {
    if (this.#opening === opening) this.#opening = undefined;
  }

  #begin(): SharedWork<T> {
    const opening: SharedWork<T> = new SharedWork((signal) =>
      this.#open(signal).catch((error: unknown) => {
        this.forget(opening);
        throw error;
      }),
    );
    return opening;
  }
}
