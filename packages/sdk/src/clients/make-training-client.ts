import { RequestFailedError } from "../errors/request-failed-error.js";
import { TinkerError } from "../errors/tinker-error.js";
import type { Session } from "../session/session.js";
import { checkLoraConfig } from "../types/validate.js";
import type { WeightsInfoResponse } from "../types/weights.js";
import { abandonModel } from "./abandon-model.js";
import {
  createModel,
  createModelByLoading,
  type LoadedModel,
  type ModelInMaking,
} from "./create-model.js";
import type { TrainingClient } from "./training-client.js";
import { RemoteTrainingClient } from "./training/remote-training-client.js";

/**
 * Turns a model that is being made into a client for it. When that fails after the server began, the
 * model is unloaded, so that nothing is left behind that nobody can use.
 */
export async function makeTrainingClient(
  session: Session,
  { future, expectedId }: ModelInMaking,
  prepare: (client: TrainingClient) => Promise<unknown> = () => Promise.resolve(),
): Promise<TrainingClient> {
  session.join();
  try {
    const client = new RemoteTrainingClient(session, await future);
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
  if (session.connection.config.createModelViaLoadWeights) {
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
