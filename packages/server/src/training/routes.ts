import { WireError, type RouteName } from "tinker-ts/wire";
import type { Authenticator } from "../auth/authenticator.js";
import type { Principal } from "../auth/principal.js";
import type { ReceivedPass } from "../workers/engine-pass.js";
import { ApiError, badRequest } from "../errors/api-error.js";
import type { AnswerRefused, Call, HandlersOf } from "../http/call.js";
import { idempotencyKeyOf, modelRequestId, unsequencedRequestId } from "../journal/journal.js";
import type { Results } from "../journal/results.js";
import { checkMetadata } from "../sessions/sessions.js";
import { canonicalJson, digestOf, identityOf } from "../store/content.js";
import type { RequestKind } from "../store/requests-table.js";
import { copyWeights, type CopyParts } from "./copy-weights.js";
import type { ModelCreation } from "./create-model.js";
import { encodeLoadOrder } from "./operations/load.js";
import { checkOptimizer, toAdamStep } from "./optimizers.js";
import type { RunRequest } from "./training-run.js";
import type { TrainingRuns } from "./training-runs.js";

/** What the routes of training work with. */
export interface TrainingRouteParts extends CopyParts {
  readonly runs: TrainingRuns;
  readonly creation: ModelCreation;
  readonly results: Results;
  readonly authenticator: Authenticator;
}

/** A request for a model, before it has an id. */
type ModelRequest = Omit<RunRequest, "requestId"> & { readonly modelId: string };

/** Creating, training, saving and loading models. */
export function trainingRoutes(
  parts: TrainingRouteParts,
): HandlersOf<
  | "createModel"
  | "getInfo"
  | "unloadModel"
  | "forwardBackward"
  | "forward"
  | "optimStep"
  | "saveWeights"
  | "saveWeightsForSampler"
  | "loadWeights"
  | "copyWeights"
> {
  const { runs, creation, results, authenticator, bases } = parts;

  const accept = (call: Call, { modelId, ...request }: ModelRequest) =>
    results.answer(call, async () => {
      const { caller, headers } = call;
      const run = runs.owned(modelId, caller);
      const requestId = requestIdOf(caller, modelId, request.seq, idempotencyKeyOf(headers));
      await run.accept({ ...request, requestId });
      return { requestId, modelId };
    });

  const pass = (call: Call<ReceivedPass>) => {
    const { seqId: seq, modelId, kind, payload, identity } = call.body;
    return accept(call, { modelId, seq, kind, payload, identity });
  };

  /** What is done with a decoded body can still find a mistake in it; that fails in its turn. */
  const submit = async (
    call: Call,
    { modelId, seqId: seq }: { modelId: string; seqId: number | null },
    kind: RequestKind,
    toPayload: () => Uint8Array,
    toIdentity?: () => Uint8Array,
  ) => {
    const payload = attempt(toPayload);
    if (payload instanceof ApiError) {
      if (seq === null) throw payload;
      return { requestId: await acceptMistake(runs, call.caller, modelId, seq, payload), modelId };
    }
    const own = toIdentity && { identity: toIdentity(), digest: digestOf(payload) };
    return accept(call, { modelId, seq, kind, payload, ...own });
  };

  return {
    async createModel({ caller, body }) {
      const requestId = await creation.fresh(caller, body);
      return { requestId, modelId: `${body.sessionId}:train:${body.modelSeqId}` };
    },

    async getInfo({ caller, body: { modelId } }) {
      const model = runs.model(modelId, caller);
      const { architecture: arch, tokenizerId } = await bases.find(model.baseModel);
      return {
        type: "get_info",
        modelId,
        modelName: model.baseModel,
        isLora: true,
        loraRank: model.lora.rank,
        modelData: { arch, modelName: model.baseModel, tokenizerId },
      };
    },

    async unloadModel({ caller, body: { modelId } }) {
      return { requestId: await runs.unload(caller, modelId), modelId };
    },

    forwardBackward: pass,
    forward: pass,

    optimStep: (call) =>
      submit(call, call.body, "optim_step", () =>
        canonicalJson("OptimStepRequest", toAdamStep(call.body)),
      ),

    saveWeights: (call) =>
      submit(call, call.body, "save_weights", () => {
        checkMetadata("user_metadata", call.body.userMetadata);
        return canonicalJson("SaveWeightsRequest", call.body);
      }),

    saveWeightsForSampler: (call) => {
      const kind = "save_weights_for_sampler";
      const type = "SaveWeightsForSamplerRequest";
      const toPayload = () => {
        checkMetadata("user_metadata", call.body.userMetadata);
        return canonicalJson(type, call.body);
      };
      // A client that retries such a save takes a new number for the sampling session it wants; the
      // number therefore does not make it another request.
      return submit(call, call.body, kind, toPayload, () =>
        identityOf(kind, canonicalJson(type, { ...call.body, samplingSessionSeqId: null })),
      );
    },

    async loadWeights(call) {
      const { caller, body } = call;
      const toReaders = () => readersOf(authenticator, caller, body.weightsAccessToken);
      const { modelId, seqId } = body;
      if (modelId !== null) {
        return submit(call, { modelId, seqId }, "load_weights", () => {
          checkOptimizer("optimizer_config", body.optimizerConfig);
          return encodeLoadOrder({ request: body, readers: toReaders() });
        });
      }
      const requestId = await creation.fromCheckpoint(caller, body, toReaders());
      return { requestId, modelId: `${body.sessionId}:train:${body.modelSeqId}` };
    },

    async copyWeights({ caller, body }) {
      const readers = readersOf(authenticator, caller, body.weightsAccessToken);
      return { tinkerPath: await copyWeights(parts, caller, body, readers) };
    },
  };
}

const numberedRoutes: ReadonlySet<RouteName> = new Set<RouteName>([
  "forwardBackward",
  "forward",
  "optimStep",
  "saveWeights",
  "saveWeightsForSampler",
  "loadWeights",
]);

/**
 * Accepts what cannot be decoded when its place in a sequence can: it fails in its turn. The official
 * client gives the number of a refused request to no other one; the model would wait for it for ever.
 */
export function refusedRequests(runs: TrainingRuns): AnswerRefused {
  return async (name, caller, error) => {
    const place = numberedRoutes.has(name) ? error.place : undefined;
    if (!place) throw error;
    const { modelId, seqId } = place;
    return { requestId: await acceptMistake(runs, caller, modelId, seqId, error), modelId };
  };
}

/** Accepts a mistake in the place of a request: a missing number holds up all later ones. */
async function acceptMistake(
  runs: TrainingRuns,
  caller: Principal,
  modelId: string,
  seq: number,
  mistake: ApiError,
): Promise<string> {
  const run = runs.owned(modelId, caller);
  const requestId = requestIdOf(caller, modelId, seq, null);
  await run.accept({ requestId, seq, kind: "refused", payload: Buffer.from(mistake.message) });
  return requestId;
}

function requestIdOf(
  caller: Principal,
  modelId: string,
  seq: number | null,
  idempotencyKey: string | null,
): string {
  if (seq === null) return unsequencedRequestId(caller.owner, idempotencyKey);
  if (seq >= 1) return modelRequestId(modelId, seq);
  throw badRequest("seq_id", `must be 1 or more, got ${seq}; 0 is the creation of the model`);
}

function attempt(action: () => Uint8Array): Uint8Array | ApiError {
  try {
    return action();
  } catch (error) {
    if (error instanceof ApiError) return error;
    if (error instanceof WireError) return new ApiError(400, error.message, { cause: error });
    throw error;
  }
}

/** Owners with private checkpoints that a load may read: the caller, and the owner of the token. */
function readersOf(
  authenticator: Authenticator,
  caller: Principal,
  token: string | null,
): readonly string[] {
  if (token === null) return [caller.owner];
  const other = authenticator.identify(token);
  if (!other) throw new ApiError(403, "weights_access_token: it is not known here or has expired");
  return [caller.owner, other.owner];
}
