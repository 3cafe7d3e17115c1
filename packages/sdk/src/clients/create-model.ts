import { ApiFuture } from "../futures/api-future.js";
import { Operation, type OperationOptions } from "../futures/operation.js";
import { pollFuture } from "../futures/poll-future.js";
import type { Cancellation } from "../runtime/cancellation.js";
import { QueueStateLog } from "../session/queue-state-log.js";
import type { Session } from "../session/session.js";
import type { Acceptance } from "../transport/acceptance.js";
import type { LoraConfig } from "../types/training.js";

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
}

/** Makes a model at the server. */
export function createModel(
  session: Session,
  model: NewModel,
  options: OperationOptions,
): ModelInMaking {
  const { sessionId, connection } = session;
  const request = { sessionId, modelSeqId: session.nextModelSeqId(), ...model };
  const expectedId = modelIdAt(session, request.modelSeqId);
  const future = make(session, model.baseModel, options, {
    kind: { requestType: "CreateModel", resultType: "CreateModelResponse" },
    submit: (signal) => connection.api.submit("createModel", request, { signal }),
    modelIdOf: ({ modelId }) => modelId ?? expectedId,
  });
  return { expectedId, future };
}

/** Makes a model from a checkpoint in a single request; for servers that offer it. */
export function createModelByLoading(
  session: Session,
  model: LoadedModel,
  options: OperationOptions,
): ModelInMaking {
  const { sessionId, connection } = session;
  const request = { sessionId, modelSeqId: session.nextModelSeqId(), ...model };
  const expectedId = modelIdAt(session, request.modelSeqId);
  const future = make(session, expectedId, options, {
    kind: { requestType: "LoadWeights", resultType: "LoadWeightsResponse" },
    submit: (signal) =>
      session.retrying(
        "loadWeights",
        () => connection.api.submit("loadWeights", request, { signal }),
        { signal },
      ),
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
  const { connection, telemetry, runtime } = session;
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
    return modelIdOf(
      await pollFuture(request, { connection, telemetry, queueLog, operation, signal }),
    );
  });
}
