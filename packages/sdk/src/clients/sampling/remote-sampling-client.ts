import { ArgumentError } from "../../errors/argument-error.js";
import { ResultError } from "../../errors/request-failed-error.js";
import { ApiFuture } from "../../futures/api-future.js";
import { Operation, type OperationOptions } from "../../futures/operation.js";
import { abortable } from "../../runtime/cancellation.js";
import type { OperationName } from "../../runtime/events.js";
import type { Session } from "../../session/session.js";
import type { Tokenizer } from "@tinker-ts/hub";
import type { ModelInputLike } from "../../types/model-input.js";
import { isExtended } from "../../types/sampling-extensions.js";
import type { GetSamplerResponse, SampleResponse } from "../../types/sampling.js";
import { bounded } from "../bounded.js";
import { completeRetryConfig, type RetryConfig } from "./retry-handler.js";
import {
  type ComputeLogprobsOptions,
  type SampleOptions,
  SamplingClient,
  type StreamOptions,
} from "../sampling-client.js";
import { runStream } from "./run-stream.js";
import {
  checkSampleCall,
  checkScores,
  hasScores,
  type KnownTokenizer,
  withExtras,
} from "./sample-call.js";
import { SampleStream, TokenQueue } from "./sample-stream.js";
import { Sampler } from "./sampler.js";
import { samplerHandle, transferState, type SamplingClientState } from "./transfer-state.js";
import { checkSamplingSource, type SamplingSource } from "../sampling-source.js";
import { readSwitch } from "../../runtime/environment.js";

/** Samples at a server. */
export class RemoteSamplingClient extends SamplingClient {
  readonly #session: Session;
  readonly #sampler: Sampler;
  readonly #onClose: () => Promise<void>;
  override readonly samplingSessionId: string;
  readonly #tokenizer: KnownTokenizer;
  #ownTokenizer: Promise<Tokenizer | null> | undefined;
  #knowsExtensions: Promise<boolean> | undefined;

  constructor(
    session: Session,
    samplingSessionId: string,
    retryConfig?: RetryConfig,
    options: {
      firstSeqId?: number;
      onClose?: () => Promise<void>;
      tokenizer?: KnownTokenizer;
    } = {},
  ) {
    super();
    const config = completeRetryConfig(retryConfig);
    this.#session = session;
    this.samplingSessionId = samplingSessionId;
    this.#sampler = new Sampler(session, { samplingSessionId }, config, options.firstSeqId);
    this.#tokenizer = options.tokenizer ?? {};
    this.#onClose = options.onClose ?? (() => Promise.resolve());
  }

  override sample(options: SampleOptions): ApiFuture<SampleResponse> {
    const call = checkSampleCall(options);
    const sample = (operation: Operation): Promise<SampleResponse> =>
      this.#sampler
        .sample(call, operation)
        .then((response) => checkScores(call, response, operation))
        .then((response) => withExtras(response, options.tokenizer, this.#tokenizer));
    return this.#start("sample", options, (operation) =>
      isExtended(call.samplingParams)
        ? this.#checkExtensions(operation).then(() => sample(operation))
        : sample(operation),
    );
  }

  override stream(options: StreamOptions): SampleStream {
    const call = checkSampleCall(options);
    const tokens = new TokenQueue();
    const response = this.#start("sample", options, async (operation) => {
      if (isExtended(call.samplingParams)) await this.#checkExtensions(operation);
      const tokenizer = this.#tokenizerFor(options, operation);
      return runStream({ sampler: this.#sampler, call, operation, tokens, tokenizer });
    });
    return new SampleStream(response, tokens);
  }

  override computeLogprobs(
    prompt: ModelInputLike,
    { promptLogprobsLastN, ...options }: ComputeLogprobsOptions = {},
  ): ApiFuture<(number | null)[]> {
    const scoring = { includePromptLogprobs: true, promptLogprobsLastN };
    const call = checkSampleCall({ prompt, samplingParams: { maxTokens: 1 }, ...scoring });
    return this.#start("computeLogprobs", options, async (operation) => {
      const { promptLogprobs } = await this.#sampler.sampleWithRetries(call, operation);
      if (hasScores(promptLogprobs)) return promptLogprobs;
      throw new ResultError(
        operation.status.requestIds.at(-1) ?? "",
        "The server returned no prompt logprobs: a KL penalty or a comparison with this model would be off.",
      );
    });
  }

  override async getBaseModel(options: OperationOptions = {}): Promise<string> {
    return (await this.#describe(options)).baseModel;
  }

  override async getTokenizer(options: OperationOptions = {}): Promise<Tokenizer> {
    const session = this.#session;
    return bounded("getTokenizer", options, session, async (signal) => {
      const modelName = await this.getBaseModel({ signal });
      const { loadModelTokenizer } = await import("../../tokenizers/load-model-tokenizer.js");
      const model = { modelName, tokenizerId: null };
      const tokenizer = await loadModelTokenizer(model, session, signal);
      this.#tokenizer.current = tokenizer;
      return tokenizer;
    });
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    const { sessionId, plan } = this.#session;
    const { samplingSessionId } = this;
    return { samplingSessionId, sessionId, baseUrl: plan.baseUrl };
  }

  override transfer(): SamplingClientState {
    return transferState(this.#session, this.samplingSessionId, this.#sampler.retryConfig);
  }

  override getSamplerHandle(): string {
    return samplerHandle(this.#session, this.samplingSessionId);
  }

  override close(): Promise<void> {
    return this.#onClose();
  }

  /** Without a tokenizer a stream has no texts, which is no reason not to sample. */
  async #tokenizerFor(
    { tokenizer }: StreamOptions,
    { signal }: Operation,
  ): Promise<Tokenizer | null> {
    if (tokenizer !== undefined) return tokenizer;
    this.#ownTokenizer ??= this.getTokenizer().catch((error: unknown) => {
      this.#session.runtime.logger.info(`streams have no texts: ${String(error)}`);
      this.#ownTokenizer = undefined;
      return null;
    });
    return abortable(this.#ownTokenizer, signal);
  }

  /** Refuses extensions for other servers, which would ignore them. */
  async #checkExtensions({ signal }: Operation): Promise<void> {
    this.#knowsExtensions ??= this.#session
      .call("getServerCapabilities", null)
      .then(({ unknownFields }) => unknownFields?.["sampling_extensions"] === true);
    this.#knowsExtensions.catch(() => {
      this.#knowsExtensions = undefined;
    });
    if (await abortable(this.#knowsExtensions, signal)) return;
    throw new ArgumentError(
      "samplingParams",
      "schema, minP, penalties, logitBias, minTokens and topLogprobs are known to tinker-ts servers only; leave them out here",
    );
  }

  #describe(options: OperationOptions): Promise<GetSamplerResponse> {
    const session = this.#session;
    const { samplingSessionId: samplerId } = this;
    return bounded("getSampler", options, session, (signal) =>
      session.call("getSampler", null, { params: { samplerId }, signal }),
    );
  }

  #start<T>(
    name: OperationName,
    options: OperationOptions,
    work: (operation: Operation) => Promise<T>,
  ): ApiFuture<T> {
    const operation = new Operation(name, this.samplingSessionId, this.#session.runtime);
    return ApiFuture.start(operation, options, this.#session, work);
  }
}

/** A client for a sampler of a session, in this thread or in the side thread as asked for. */
export async function makeSamplingClient(
  session: Session,
  samplingSessionId: string,
  retryConfig: RetryConfig | undefined,
  tokenizer: KnownTokenizer = {},
): Promise<SamplingClient> {
  session.join();
  const client = new RemoteSamplingClient(session, samplingSessionId, retryConfig, { tokenizer });
  const { plan, runtime } = session;
  // What answers inside this thread cannot be asked from another one; only an explicit wish is refused.
  const isAsked =
    plan.options.sideThread ??
    (!session.parts.isInside && readSwitch(runtime.env, "TINKER_SUBPROCESS_SAMPLING", false));
  if (!isAsked) return client;
  const { SideSamplingClient } = await import("../side-thread/side-sampling-client.js");
  return new SideSamplingClient(client, session, tokenizer);
}

/** Opens a sampler at the server. */
export async function createSamplingSession(
  session: Session,
  source: SamplingSource,
  options: OperationOptions & { readonly retryConfig?: RetryConfig | undefined },
): Promise<SamplingClient> {
  checkSamplingSource(source);
  completeRetryConfig(options.retryConfig);
  const request = {
    sessionId: session.sessionId,
    samplingSessionSeqId: session.nextSamplingSessionSeqId(),
    baseModel: source.baseModel && session.parts.nameModel(source.baseModel),
    modelPath: source.modelPath,
  };
  const { samplingSessionId } = await bounded("createSamplingClient", options, session, (signal) =>
    session.api.call("createSamplingSession", request, { signal }),
  );
  return makeSamplingClient(session, samplingSessionId, options.retryConfig);
}
