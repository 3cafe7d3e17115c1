import { ApiFuture } from "../../futures/api-future.js";
import { Operation, type OperationOptions } from "../../futures/operation.js";
import { pollFuture } from "../../futures/poll-future.js";
import { abortable, type Cancellation } from "../../runtime/cancellation.js";
import { QueueStateLog } from "../../session/queue-state-log.js";
import type { Session } from "../../session/session.js";
import type { Acceptance } from "../../transport/api.js";
import type { LoraConfig } from "../../types/training.js";
import { RequestFailedError } from "../../errors/request-failed-error.js";
import { TinkerError } from "../../errors/tinker-error.js";
import { checkLoraConfig } from "../../types/validate.js";
import type { WeightsInfoResponse } from "../../types/weights.js";
import type { TrainingClient } from "../training-client.js";
import { RemoteTrainingClient } from "./remote-training-client.js";

// What a session's first client needs is loaded in one piece.
export { finishSession, openSession } from "../../session/open-session.js";
export { watchProcessEnd } from "../../session/process-end.js";
export { createSamplingSession } from "../sampling/remote-sampling-client.js";

/**
 * Turns a model that is being made into a client for it. When that fails after the server began, the
 * model is unloaded, so that no unusable model is left behind.
 */
export async function makeTrainingClient(
  session: Session,
  { future, expectedId, model }: ModelInMaking,
  prepare: (client: TrainingClient) => Promise<unknown> = () => Promise.resolve(),
): Promise<TrainingClient> {
  session.join();
  const remake = model && ((signal: Cancellation) => createAgain(session, model, signal));
  try {
    const modelId = await future;
    const client = new RemoteTrainingClient(session, modelId, remake);
    if (model) {
      const { checkAdapter } = await import("../../session/silences.js");
      await checkAdapter(session, modelId, model.loraConfig);
    }
    await prepare(client);
    return client;
  } catch (error) {
    const isLast = session.leave();
    const mayExist = future.requestId !== null && !(error instanceof RequestFailedError);
    if (mayExist && !session.closed.aborted) await abandonModel(session, expectedId, isLast);
    throw error;
  }
}

/** Makes a training client that goes on from a checkpoint. */
export async function makeTrainingClientFromState(
  session: Session,
  model: LoadedModel,
  describe: () => Promise<WeightsInfoResponse>,
  signal: AbortSignal,
): Promise<TrainingClient> {
  if (session.config.createModelViaLoadWeights) {
    return makeTrainingClient(session, createModelByLoading(session, model, { signal }));
  }
  const { path, optimizer, userMetadata, weightsAccessToken } = model;
  const info = await describe();
  if (!info.isLora || info.loraRank === null) {
    throw new TinkerError(`${path} is not a LoRA checkpoint, so training cannot go on from it.`, {
      code: "not_lora",
    });
  }
  const making = createModel(
    session,
    {
      baseModel: model.baseModel ?? info.baseModel,
      loraConfig: checkLoraConfig({
        rank: info.loraRank,
        trainUnembed: info.trainUnembed ?? true,
        trainMlp: info.trainMlp ?? true,
        trainAttn: info.trainAttn ?? true,
      }),
      userMetadata,
    },
    { signal },
  );
  const options = { signal, weightsAccessToken };
  return makeTrainingClient(session, making, (client) =>
    optimizer ? client.loadStateWithOptimizer(path, options) : client.loadState(path, options),
  );
}

async function createAgain(
  session: Session,
  model: NewModel,
  signal: Cancellation,
): Promise<string> {
  const { future } = createModel(session, model, {});
  return abortable(future, signal);
}

const timeoutMs = 5_000;

/**
 * Unloads a model that will not be used. The server may end the whole session with it, so this is done
 * only when nothing else lives in the session; the next client then opens a new one.
 */
async function abandonModel(
  session: Session,
  modelId: string,
  isLastOfSession: boolean,
): Promise<void> {
  const { api, runtime, closed } = session;
  if (!isLastOfSession) {
    runtime.logger.warn(
      `model ${modelId} was given up while it was being made; the server may keep it until the session ends`,
    );
    return;
  }
  session.stop();
  const giveUp = new AbortController();
  const cancelTimer = runtime.clock.schedule(timeoutMs, () => giveUp.abort());
  try {
    await api.submit(
      "unloadModel",
      { modelId },
      { signal: AbortSignal.any([closed, giveUp.signal]), maxRetries: 1 },
    );
  } catch (error) {
    runtime.logger.debug(`could not unload ${modelId}: ${String(error)}`);
  } finally {
    cancelTimer();
  }
}

/** Free-form facts about a session or a run. */
export type UserMetadata = Readonly<Record<string, string>>;

/** A model to be made from a base model. */
export interface NewModel {
  readonly baseModel: string;
  readonly loraConfig: LoraConfig;
  readonly userMetadata: UserMetadata | undefined;
}

/** A model to be made from a checkpoint. */
export interface LoadedModel {
  readonly path: string;
  readonly optimizer: boolean;
  readonly baseModel: string | undefined;
  readonly userMetadata: UserMetadata | undefined;
  readonly weightsAccessToken: string | undefined;
}

/** A model that is being made, and the id that it will have. */
export interface ModelInMaking {
  readonly expectedId: string;
  /** Resolves to the id that the server gave. */
  readonly future: ApiFuture<string>;
  /** What it is made of, where it is not made from a checkpoint. */
  readonly model?: NewModel;
}

/** Makes a model at the server. */
export function createModel(
  session: Session,
  model: NewModel,
  options: OperationOptions,
): ModelInMaking {
  const { sessionId } = session;
  const baseModel = session.parts.nameModel(model.baseModel);
  const request = { sessionId, modelSeqId: session.nextModelSeqId(), ...model, baseModel };
  const expectedId = modelIdAt(session, request.modelSeqId);
  const future = make(session, model.baseModel, options, {
    kind: { requestType: "CreateModel", resultType: "CreateModelResponse" },
    submit: (signal) => session.api.submit("createModel", request, { signal }),
    modelIdOf: ({ modelId }) => modelId ?? expectedId,
  });
  return { expectedId, future, model };
}

/** Makes a model from a checkpoint in a single request; for servers that offer it. */
export function createModelByLoading(
  session: Session,
  model: LoadedModel,
  options: OperationOptions,
): ModelInMaking {
  const { sessionId } = session;
  const request = { sessionId, modelSeqId: session.nextModelSeqId(), ...model };
  const expectedId = modelIdAt(session, request.modelSeqId);
  const future = make(session, expectedId, options, {
    kind: { requestType: "LoadWeights", resultType: "LoadWeightsResponse" },
    submit: (signal) =>
      session.api.submit("loadWeights", request, { signal, retries: { host: session } }),
    modelIdOf: () => expectedId,
  });
  return { expectedId, future };
}

/** The id that the server gives to the model of this number. */
function modelIdAt({ sessionId }: Session, modelSeqId: number): string {
  return `${sessionId}:train:${modelSeqId}`;
}

type Kind =
  | { readonly requestType: "CreateModel"; readonly resultType: "CreateModelResponse" }
  | { readonly requestType: "LoadWeights"; readonly resultType: "LoadWeightsResponse" };

interface Making {
  readonly kind: Kind;
  readonly submit: (signal: Cancellation) => Promise<Acceptance>;
  readonly modelIdOf: (result: { readonly modelId: string | null }) => string;
}

function make(
  session: Session,
  name: string,
  options: OperationOptions,
  { kind, submit, modelIdOf }: Making,
): ApiFuture<string> {
  const { runtime } = session;
  const operation = new Operation("createModel", name, runtime);
  const { signal } = operation;
  return ApiFuture.start(operation, options, session, async () => {
    const startedAt = runtime.clock.now();
    const accepted = await submit(signal);
    operation.spent("submitMs", startedAt);
    operation.accepted(accepted.requestId);
    const queueLog = new QueueStateLog(runtime, { activity: "Model creation", name });
    const roundTripMs = runtime.clock.now() - startedAt;
    const request = { ...kind, ...accepted, roundTripMs };
    return modelIdOf(await pollFuture(request, { host: session, queueLog, operation, signal }));
  });
}
