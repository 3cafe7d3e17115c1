import { checkOptions } from "../../errors/check-options.js";
import { CancelledError } from "../../errors/tinker-error.js";
import { ResultError } from "../../errors/request-failed-error.js";
import { ApiFuture } from "../../futures/api-future.js";
import { Operation, operationOptions, type OperationOptions } from "../../futures/operation.js";
import { abortable, type Cancellation } from "../../runtime/cancellation.js";
import type { OperationName } from "../../runtime/events.js";
import { consoleUrl } from "../../session/console-url.js";
import type { Session } from "../../session/session.js";
import type { Tokenizer } from "@tinker-ts/hub";
import type { DatumLike } from "../../types/datum.js";
import type {
  AdamParams,
  AdamParamsInput,
  ForwardBackwardOutput,
  GetInfoResponse,
  LossFnType,
  OptimStepResponse,
} from "../../types/training.js";
import { checkAdamParams } from "../../types/validate.js";
import type {
  LoadWeightsResponse,
  SaveWeightsExternalResponse,
  SaveWeightsForSamplerResponse,
  SaveWeightsResponse,
} from "../../types/weights.js";
import { bounded } from "../bounded.js";
import { createSamplingSession, makeSamplingClient } from "../sampling/remote-sampling-client.js";
import { completeRetryConfig } from "../sampling/retry-handler.js";
import type { SamplingClient } from "../sampling-client.js";
import type { KnownTokenizer } from "../sampling/sample-call.js";
import { TrainingClient } from "../training-client.js";
import {
  loadStateOptions,
  passOptions,
  saveStateOptions,
  trainStepOptions,
  type LoadStateOptions,
  type PassOptions,
  type SamplerOptions,
  type SaveExternalOptions,
  type SaveSamplerOptions,
  type SaveStateOptions,
  type TrainStepOptions,
  type TrainStepResult,
} from "../training-options.js";
import { checkCheckpointName, checkTinkerPath, checkTtl } from "./checkpoint-arguments.js";
import {
  checkCustomData,
  forwardData,
  logprobsOf,
  surrogateData,
  type CustomLossFn,
} from "./custom-loss.js";
import { preparePass, runPass } from "./pass.js";
import { runLoad, runRequest } from "./request.js";
import { TrainingRun } from "./training-run.js";

/** Trains a model at a server. */
export class RemoteTrainingClient extends TrainingClient {
  readonly #run: TrainingRun;
  readonly #tokenizer: KnownTokenizer = {};
  readonly #remake: ((signal: Cancellation) => Promise<string>) | undefined;

  /** `remake` makes another model like this one, for servers that load into new models alone. */
  constructor(
    session: Session,
    modelId: string,
    remake?: (signal: Cancellation) => Promise<string>,
  ) {
    super();
    this.#remake = remake;
    this.#run = new TrainingRun(session, modelId);
  }

  override get modelId(): string {
    return this.#run.modelId;
  }

  override forward(
    data: readonly DatumLike[],
    lossFn: LossFnType,
    options: PassOptions = {},
  ): ApiFuture<ForwardBackwardOutput> {
    checkOptions(options, [trainStepOptions, passOptions, operationOptions]);
    const pass = preparePass(this.#run, data, lossFn, options.lossFnConfig, true);
    return this.#start("forward", options, (operation) => runPass(this.#run, operation, pass));
  }

  override forwardBackward(
    data: readonly DatumLike[],
    lossFn: LossFnType,
    options: PassOptions = {},
  ): ApiFuture<ForwardBackwardOutput> {
    checkOptions(options, [trainStepOptions, passOptions, operationOptions]);
    const pass = preparePass(this.#run, data, lossFn, options.lossFnConfig, false);
    return this.#start("forwardBackward", options, (operation) =>
      runPass(this.#run, operation, pass),
    );
  }

  override forwardBackwardCustom(
    data: readonly DatumLike[],
    lossFn: CustomLossFn,
    options: OperationOptions = {},
  ): ApiFuture<ForwardBackwardOutput> {
    const run = this.#run;
    const datums = checkCustomData(data);
    const pass = preparePass(run, forwardData(datums), "cross_entropy", undefined, true);
    return this.#start("forwardBackwardCustom", options, async (operation) => {
      const forward = runPass(run, operation, pass);
      // The second pass has its place from the start: what is called behind this, such as the optimizer's
      // step, must not run without its gradients.
      const turn = run.sequence.take();
      try {
        const logprobs = logprobsOf(await forward, datums.length);
        const { loss, gradients, metrics } = await abortable(
          Promise.resolve(lossFn(datums, logprobs)),
          operation.signal,
        );
        const surrogate = surrogateData(datums, logprobs, loss, gradients);
        const backward = preparePass(run, surrogate, "cross_entropy", undefined, false);
        const output = await runPass(run, operation, backward, undefined, turn);
        const { "loss:sum": served, ...others } = output.metrics;
        const ofServer = served === undefined ? {} : { "surrogate_loss:sum": served };
        return { ...output, metrics: { ...others, ...ofServer, "loss:sum": loss, ...metrics } };
      } finally {
        turn.end();
      }
    });
  }

  override optimStep(
    adamParams: AdamParamsInput = {},
    options: OperationOptions = {},
  ): ApiFuture<OptimStepResponse> {
    checkOptions(options, [operationOptions]);
    const params = checkAdamParams(adamParams);
    return this.#start("optimStep", options, async (operation) =>
      this.#checked(
        params,
        await runRequest(this.#run, operation, "optimStep", (seqId) => ({
          adamParams: params,
          modelId: this.modelId,
          seqId,
        })),
      ),
    );
  }

  override async trainStep(
    data: readonly DatumLike[],
    lossFn: LossFnType,
    options: TrainStepOptions = {},
  ): Promise<TrainStepResult> {
    checkOptions(options, [trainStepOptions, passOptions, operationOptions]);
    const { lossFnConfig, adamParams } = options;
    const params = checkAdamParams(adamParams);
    const prepared = preparePass(this.#run, data, lossFn, lossFnConfig, false);
    let isAccepted = false;
    const pass = this.#start("forwardBackward", options, (operation) =>
      runPass(this.#run, operation, prepared, () => {
        isAccepted = true;
      }),
    );
    const step = this.#start("optimStep", options, async (operation) =>
      this.#checked(
        params,
        await runRequest(this.#run, operation, "optimStep", (seqId) => {
          if (!isAccepted) throw new CancelledError("optimStep was not sent: its pass failed.");
          return { adamParams: params, modelId: this.modelId, seqId };
        }),
      ),
    );
    const [forwardBackward, optimStep] = await Promise.allSettled([pass, step]);
    if (forwardBackward.status === "rejected") throw forwardBackward.reason;
    if (optimStep.status === "rejected") throw optimStep.reason;
    return { forwardBackward: forwardBackward.value, optimStep: optimStep.value };
  }

  override saveState(name: string, options: SaveStateOptions = {}): ApiFuture<SaveWeightsResponse> {
    checkOptions(options, [saveStateOptions, operationOptions]);
    const { ttlSeconds, overwrite, userMetadata } = options;
    checkCheckpointName(name);
    checkTtl(ttlSeconds);
    return this.#start("saveState", options, (operation) =>
      runRequest(this.#run, operation, "saveWeights", (seqId) => ({
        modelId: this.modelId,
        path: name,
        seqId,
        ttlSeconds,
        overwrite,
        userMetadata,
      })),
    );
  }

  override loadState(path: string, options: LoadStateOptions = {}): ApiFuture<LoadWeightsResponse> {
    return this.#load(path, false, options);
  }

  override loadStateWithOptimizer(
    path: string,
    options: LoadStateOptions = {},
  ): ApiFuture<LoadWeightsResponse> {
    return this.#load(path, true, options);
  }

  override saveWeightsForSampler(
    name: string,
    options: SaveSamplerOptions = {},
  ): ApiFuture<SaveWeightsForSamplerResponse> {
    checkOptions(options, [saveStateOptions, operationOptions]);
    const { ttlSeconds, userMetadata } = options;
    checkCheckpointName(name);
    checkTtl(ttlSeconds);
    return this.#start("saveWeightsForSampler", options, async (operation) => {
      const { path, ...rest } = await runRequest(
        this.#run,
        operation,
        "saveWeightsForSampler",
        (seqId) => ({ modelId: this.modelId, path: name, seqId, ttlSeconds, userMetadata }),
      );
      return { ...rest, path: expectField(path, "path", operation) };
    });
  }

  override saveWeightsExternal(
    name: string,
    options: SaveExternalOptions = {},
  ): ApiFuture<SaveWeightsExternalResponse> {
    checkOptions(options, [saveStateOptions, operationOptions]);
    const { ttlSeconds } = options;
    checkCheckpointName(name);
    checkTtl(ttlSeconds);
    return this.#start("saveWeightsExternal", options, async (operation) => {
      const turn = this.#run.sequence.take();
      const { saveExternal } = await import("../external-weights.js");
      return saveExternal(this.#run, operation, turn, { name, ttlSeconds });
    });
  }

  override saveWeightsAndGetSamplingClient(
    options: SamplerOptions = {},
  ): ApiFuture<SamplingClient> {
    const { session } = this.#run;
    completeRetryConfig(options.retryConfig);
    return this.#start("saveWeightsForSampler", options, async (operation) => {
      const { samplingSessionId } = await runRequest(
        this.#run,
        operation,
        "saveWeightsForSampler",
        (seqId) => ({
          modelId: this.modelId,
          samplingSessionSeqId: session.nextSamplingSessionSeqId(),
          seqId,
        }),
      );
      const id = expectField(samplingSessionId, "sampling_session_id", operation);
      return makeSamplingClient(session, id, options.retryConfig, this.#tokenizer);
    });
  }

  override createSamplingClient(
    modelPath: string,
    options: SamplerOptions = {},
  ): Promise<SamplingClient> {
    return createSamplingSession(this.#run.session, { modelPath }, options);
  }

  override async getInfo(options: OperationOptions = {}): Promise<GetInfoResponse> {
    const { session, modelId } = this.#run;
    const info = await bounded("getInfo", options, session, (signal) =>
      session.call("getInfo", { modelId }, { signal }),
    );
    const tokenizerId = info.modelData.tokenizerId?.split(":")[0] ?? null;
    return { ...info, modelData: { ...info.modelData, tokenizerId } };
  }

  override async getTokenizer(options: OperationOptions = {}): Promise<Tokenizer> {
    const { session } = this.#run;
    return bounded("getTokenizer", options, session, async (signal) => {
      const { modelData } = await this.getInfo({ signal });
      const { loadModelTokenizer } = await import("../../tokenizers/load-model-tokenizer.js");
      const tokenizer = await loadModelTokenizer(modelData, session, signal);
      this.#tokenizer.current = tokenizer;
      return tokenizer;
    });
  }

  override getConsoleUrl(): string | null {
    return consoleUrl(this.#run.session.plan, "training_runs", this.modelId);
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    const { session, modelId } = this.#run;
    return { modelId, sessionId: session.sessionId, baseUrl: session.plan.baseUrl };
  }

  #load(
    path: string,
    optimizer: boolean,
    options: LoadStateOptions,
  ): ApiFuture<LoadWeightsResponse> {
    checkOptions(options, [loadStateOptions, operationOptions]);
    const { weightsAccessToken } = options;
    checkTinkerPath(path);
    const remake = this.#remake;
    return this.#start("loadState", options, (operation) =>
      runLoad(
        this.#run,
        operation,
        (modelId, seqId) => ({ modelId, seqId, path, optimizer, weightsAccessToken }),
        remake,
      ),
    );
  }

  async #checked(
    { gradClipNorm }: AdamParams,
    response: OptimStepResponse,
  ): Promise<OptimStepResponse> {
    if (gradClipNorm > 0) {
      const { checkClipping } = await import("../../session/silences.js");
      await checkClipping(this.#run.session, gradClipNorm, response);
    }
    return response;
  }

  // `work` runs inside this call, so that its place in the order is taken before anything is awaited.
  #start<T>(
    name: OperationName,
    options: OperationOptions,
    work: (operation: Operation) => Promise<T>,
  ): ApiFuture<T> {
    const { session } = this.#run;
    const operation = new Operation(name, this.modelId, session.runtime);
    return ApiFuture.start(operation, options, session, work);
  }
}

function expectField(value: string | null, name: string, operation: Operation): string {
  if (value !== null) return value;
  const requestId = operation.status.requestIds.at(-1) ?? "";
  throw new ResultError(requestId, `The server saved the weights but returned no ${name}.`);
}
