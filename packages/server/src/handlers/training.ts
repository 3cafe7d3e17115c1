import { WireError } from "tinker-ts/wire";
import type { Authenticator } from "../auth/authenticator.js";
import type { Principal } from "../auth/principal.js";
import type { Core } from "../core.js";
import type { ReceivedPass } from "../decoding/received-pass.js";
import { encodeLoadOrder } from "../engine-host/operations/load.js";
import { ApiError } from "../errors/api-error.js";
import type { Call, HandlersOf } from "../http/call.js";
import { acceptAndAnswer } from "./futures.js";
import { canonicalJson, digestOf, identityOf } from "../queue/canonical-payload.js";
import type { ModelRequest } from "../service/models.js";
import { idempotencyKeyOf } from "../service/request-ids.js";
import type { RequestKind } from "../store/requests-table.js";

/** Creating, training, saving and loading models. */
export function trainingHandlers(
  core: Core,
  authenticator: Authenticator,
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
> {
  const { models, creation } = core;
  const accept = (call: Call, request: Omit<ModelRequest, "idempotencyKey" | "holdMs">) =>
    acceptAndAnswer(core, call, async (holdMs) => {
      const { modelId } = request;
      const idempotencyKey = idempotencyKeyOf(call.headers);
      const requestId = await models.submit(call.caller, { ...request, idempotencyKey, holdMs });
      return { requestId, modelId };
    });
  const submit = async (
    call: Call,
    request: { modelId: string; seqId: number | null },
    kind: RequestKind,
    toPayload: () => Uint8Array,
    toIdentity?: () => Uint8Array,
  ) => {
    const { modelId, seqId: seq } = request;
    const payload = attempt(toPayload);
    if (payload instanceof ApiError) {
      if (seq === null) throw payload;
      return { requestId: await models.refuse(call.caller, modelId, seq, payload), modelId };
    }
    const own = toIdentity && { identity: toIdentity(), digest: digestOf(payload) };
    return accept(call, { modelId, seq, kind, payload, ...own });
  };
  const pass = (call: Call<ReceivedPass>) => {
    const { seqId: seq, modelId, kind, payload, identity } = call.body;
    return accept(call, { modelId, seq, kind, payload, identity, pass: call.body });
  };

  return {
    async createModel({ caller, body }) {
      const requestId = await creation.fresh(caller, body);
      return { requestId, modelId: `${body.sessionId}:train:${body.modelSeqId}` };
    },

    getInfo: ({ caller, body }) => models.info(caller, body.modelId),

    async unloadModel({ caller, body: { modelId } }) {
      return { requestId: await models.unload(caller, modelId), modelId };
    },

    forwardBackward: pass,
    forward: pass,

    optimStep: (call) =>
      submit(call, call.body, "optim_step", () => canonicalJson("OptimStepRequest", call.body)),

    saveWeights: (call) =>
      submit(call, call.body, "save_weights", () => canonicalJson("SaveWeightsRequest", call.body)),

    saveWeightsForSampler: (call) => {
      const kind = "save_weights_for_sampler";
      const type = "SaveWeightsForSamplerRequest";
      const toPayload = () => canonicalJson(type, call.body);
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
        return submit(call, { modelId, seqId }, "load_weights", () =>
          encodeLoadOrder({ request: body, readers: toReaders() }),
        );
      }
      const requestId = await creation.fromCheckpoint(caller, body, toReaders());
      return { requestId, modelId: `${body.sessionId}:train:${body.modelSeqId}` };
    },
  };
}

/** What is done with a decoded body can still find a mistake in it. */
function attempt(action: () => Uint8Array): Uint8Array | ApiError {
  try {
    return action();
  } catch (error) {
    if (error instanceof ApiError) return error;
    if (error instanceof WireError) return new ApiError(400, error.message, { cause: error });
    throw error;
  }
}

/** Whose private checkpoints a load may read: the caller's, and those of the token's owner. */
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
