import type { WireInput } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Context } from "../context/context.js";
import type { BaseModels } from "../engine-host/base-models.js";
import type { ReceivedPass } from "../decoding/received-pass.js";
import { badRequest, gone, notFound, tooMany, type ApiError } from "../errors/api-error.js";
import { identityOf } from "../queue/canonical-payload.js";
import type { Model, ModelStanding } from "../store/models-table.js";
import type { RequestKind } from "../store/requests-table.js";
import type { ModelLanes } from "./model-lanes.js";
import { looseRequestId, modelRequestId } from "./request-ids.js";
import type { Sessions } from "./sessions.js";

/** A request for a model, ready to be accepted. */
export interface ModelRequest {
  readonly modelId: string;
  readonly seq: number | null;
  readonly kind: RequestKind;
  readonly payload: Uint8Array;
  /** What a retry has in common with the first attempt. @default the payload */
  readonly identity?: Uint8Array;
  /** SHA-256 of the payload, where the identity is not made from all of it. */
  readonly digest?: Uint8Array | undefined;
  readonly idempotencyKey: string | null;
  /** A pass, with what it was decoded to. */
  readonly pass?: ReceivedPass;
  /** How long its sender likes to wait for the outcome itself. @default 0 */
  readonly holdMs?: number;
}

/** Training runs: how requests for them are accepted, and what is known about them. */
export class Models {
  readonly #context: Context;
  readonly #sessions: Sessions;
  readonly #bases: BaseModels;
  readonly #lanes: ModelLanes;

  constructor(
    context: Context,
    parts: { sessions: Sessions; bases: BaseModels; lanes: ModelLanes },
  ) {
    this.#context = context;
    this.#sessions = parts.sessions;
    this.#bases = parts.bases;
    this.#lanes = parts.lanes;
  }

  /** Accepts a request for a model. */
  async submit(caller: Principal, request: ModelRequest): Promise<string> {
    const { modelId, seq, kind, payload } = request;
    const { models } = this.#context.store;
    const standing = this.#lanes.standing(modelId) ?? models.standing(modelId);
    const model = ownedBy(caller, modelId, standing);
    this.#refuseEnded(model);
    this.#sessions.touch(model.sessionId, caller);
    if (seq !== null && seq < 1) {
      throw badRequest("seq_id", `must be 1 or more, got ${seq}; 0 is the creation of the model`);
    }
    const requestId =
      seq === null
        ? looseRequestId(caller.owner, request.idempotencyKey)
        : modelRequestId(modelId, seq);
    if (this.#isForgotten(requestId, modelId, seq)) return requestId;
    const { ledger, passes } = this.#context;
    const { pass } = request;
    let isBegun = false;
    const head = await ledger.accept(
      {
        requestId,
        owner: caller.owner,
        sessionId: model.sessionId,
        modelId,
        samplerId: null,
        seq,
        kind,
        identity: request.identity ?? identityOf(kind, payload),
        payload,
        digest: request.digest,
      },
      () => {
        this.#refuseEnded(models.standing(modelId) ?? model);
        this.#refuseOverload(modelId, seq, payload.length);
      },
      (arriving, accepted) => {
        const lane = this.#lanes.get(modelId);
        if (!lane?.waitsFor(seq)) return false;
        if (pass ? !passes.keep(requestId, pass) : kind !== "optim_step") return false;
        accepted.catch(() => passes.forget(requestId));
        lane.begin(arriving, accepted);
        return (isBegun = true);
      },
      request.holdMs,
    );
    if (!head || isBegun) return requestId;
    if (pass) passes.keep(requestId, pass);
    this.#lanes.get(modelId)?.add(head);
    return requestId;
  }

  /** Accepts a mistake in the place of a request, to fail in its turn: a missing number holds up all later ones. */
  refuse(caller: Principal, modelId: string, seq: number, mistake: ApiError): Promise<string> {
    const payload = Buffer.from(mistake.message);
    return this.submit(caller, { modelId, seq, kind: "refused", payload, idempotencyKey: null });
  }

  /** Accepts the end of a model. */
  async unload(caller: Principal, modelId: string): Promise<string> {
    const requestId = `${modelId}:unload`;
    const model = this.owned(modelId, caller);
    const payload = Buffer.from(modelId);
    const head = await this.#context.ledger.accept(
      {
        requestId,
        owner: caller.owner,
        sessionId: model.sessionId,
        modelId,
        samplerId: null,
        seq: null,
        kind: "unload_model",
        identity: identityOf("unload_model", payload),
        payload,
      },
      () => this.#refuseEnded(this.#context.store.models.get(modelId) ?? model),
    );
    if (head) this.#lanes.get(modelId)?.add(head);
    return requestId;
  }

  async info(caller: Principal, modelId: string): Promise<WireInput<"GetInfoResponse">> {
    const model = this.owned(modelId, caller);
    const base = await this.#bases.find(model.baseModel);
    return {
      type: "get_info",
      modelId,
      modelName: model.baseModel,
      isLora: true,
      loraRank: model.lora.rank,
      modelData: {
        arch: base.architecture,
        modelName: model.baseModel,
        tokenizerId: base.tokenizerId,
      },
    };
  }

  /** A model of the caller, live or past. */
  owned(modelId: string, caller: Principal): Model {
    return ownedBy(caller, modelId, this.#context.store.models.get(modelId));
  }

  #refuseEnded(model: ModelStanding): void {
    if (model.state === "creating" || model.state === "live") return;
    throw gone(
      `model ${model.modelId} has ended: ${model.stateReason ?? "its session was closed"}; create a new one, for example from a checkpoint`,
    );
  }

  /** Whether a request was finished so long ago that nothing of it is left. */
  #isForgotten(requestId: string, modelId: string, seq: number | null): boolean {
    if (seq === null || seq >= (this.#lanes.get(modelId)?.nextSeq ?? 0)) return false;
    return this.#context.store.requests.head(requestId) === undefined;
  }

  /** The request whose turn it is always gets in; otherwise a full queue could never empty. */
  #refuseOverload(modelId: string, seq: number | null, sizeBytes: number): void {
    const lane = this.#lanes.get(modelId);
    if (!lane || seq === lane.nextSeq) return;
    const { maxPendingPerModel, maxPendingBytesPerModel } = this.#context.limits;
    const ahead = seq === null ? lane.pendingCount : seq - lane.nextSeq;
    if (ahead >= maxPendingPerModel || lane.pendingBytes + sizeBytes > maxPendingBytesPerModel) {
      throw tooMany(`model ${modelId} has ${lane.pendingCount} requests waiting`, 1000);
    }
  }
}

function ownedBy<M extends ModelStanding>(
  caller: Principal,
  modelId: string,
  model: M | undefined,
): M {
  if (model?.owner === caller.owner) return model;
  throw notFound(`model ${modelId}`);
}
