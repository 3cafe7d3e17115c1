import { ApiFuture } from "../../futures/api-future.js";
import { Operation, type OperationOptions } from "../../futures/operation.js";
import { onAbort } from "../../runtime/cancellation.js";
import type { OperationName } from "../../runtime/events.js";
import type { Session } from "../../session/session.js";
import type { Tokenizer } from "@tinker-ts/hub";
import { ModelInput, type ModelInputLike } from "../../types/model-input.js";
import type { SampleResponse } from "../../types/sampling.js";
import { TensorData } from "../../types/tensor-data.js";
import {
  SamplingClient,
  type ComputeLogprobsOptions,
  type SampleOptions,
  type StreamOptions,
} from "../sampling-client.js";
import {
  checkSampleCall,
  type KnownTokenizer,
  nameSequences,
  withExtras,
} from "../sampling/sample-call.js";
import type { SampleStream } from "../sampling/sample-stream.js";
import type { SamplingClientState } from "../sampling/transfer-state.js";
import type { PostedSample, SideCall } from "./messages.js";
import { sharedSideThread, type SideThread } from "./side-thread.js";

/** Has the side thread release clients that were garbage collected. */
const collected = new FinalizationRegistry<() => Promise<void>>((release) => void release());

/** Samples in the side thread; everything else is done here by the client it wraps. */
export class SideSamplingClient extends SamplingClient {
  readonly #client: SamplingClient;
  readonly #session: Session;
  readonly #tokenizer: KnownTokenizer;
  readonly #thread: SideThread;
  readonly #targetId: number;
  readonly #release: () => Promise<void>;

  constructor(client: SamplingClient, session: Session, tokenizer: KnownTokenizer) {
    super();
    this.#client = client;
    this.#session = session;
    this.#tokenizer = tokenizer;
    const thread = sharedSideThread(session.runtime.clock);
    const targetId = thread.register(client.transfer());
    this.#thread = thread;
    this.#targetId = targetId;
    // Must not hold this client, or it would never be collected.
    const release = (): Promise<void> => {
      stopListening();
      return thread.drop(targetId);
    };
    const stopListening = onAbort(session.closed, () => void thread.drop(targetId));
    this.#release = release;
    collected.register(this, release);
  }

  override get samplingSessionId(): string {
    return this.#client.samplingSessionId;
  }

  override sample(options: SampleOptions): ApiFuture<SampleResponse> {
    checkSampleCall(options);
    const { signal: _signal, timeoutMs: _timeoutMs, tokenizer, prompt, ...rest } = options;
    const plain = { ...rest, prompt: { chunks: ModelInput.from(prompt).chunks } };
    const call = { method: "sample", options: plain } as const;
    return this.#start("sample", options, call, (response) =>
      withExtras(revived(response as PostedSample), tokenizer, this.#tokenizer),
    );
  }

  /** Tokens one by one are no work worth another thread. */
  override stream(options: StreamOptions): SampleStream {
    return this.#client.stream(options);
  }

  override computeLogprobs(
    prompt: ModelInputLike,
    { promptLogprobsLastN, ...options }: ComputeLogprobsOptions = {},
  ): ApiFuture<(number | null)[]> {
    checkSampleCall({ prompt, includePromptLogprobs: true, promptLogprobsLastN });
    const plain = { chunks: ModelInput.from(prompt).chunks };
    const call = {
      method: "computeLogprobs",
      prompt: plain,
      options: { promptLogprobsLastN },
    } as const;
    return this.#start("computeLogprobs", options, call);
  }

  override getBaseModel(options?: OperationOptions): Promise<string> {
    return this.#client.getBaseModel(options);
  }

  override getTokenizer(options?: OperationOptions): Promise<Tokenizer> {
    return this.#client.getTokenizer(options);
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    return this.#client.toJSON();
  }

  override transfer(): SamplingClientState {
    return this.#client.transfer();
  }

  override getSamplerHandle(): string {
    return this.#client.getSamplerHandle();
  }

  override async close(): Promise<void> {
    await this.#release();
    await this.#client.close();
  }

  #start<T>(
    name: OperationName,
    options: OperationOptions,
    call: SideCall,
    finish: (result: unknown) => T = (result) => result as T,
  ): ApiFuture<T> {
    const operation = new Operation(name, this.samplingSessionId, this.#session.runtime);
    return ApiFuture.start(operation, options, this.#session, async () => {
      const result = await this.#thread.call(this.#targetId, call, operation.signal);
      return finish(result);
    });
  }
}

/** Objects of classes do not survive the way between threads. */
function revived({ sequenceIds, ...response }: PostedSample): SampleResponse {
  const { targetPromptLogprobs: targets, promptAltTokens: drawn } = response;
  if (sequenceIds[0] !== undefined) {
    nameSequences(response.sequences, (index) => sequenceIds[index]);
  }
  return {
    ...response,
    targetPromptLogprobs: targets && new TensorData(targets),
    promptAltTokens: drawn && {
      tokens: new TensorData(drawn.tokens),
      logprobs: new TensorData(drawn.logprobs),
    },
  };
}
