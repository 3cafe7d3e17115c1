import { randomBytes } from "node:crypto";
import { checkLoraConfig, type WireInput, type WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { BaseModels } from "../engine-host/base-models.js";
import { encodeLoadOrder } from "../engine-host/operations/load.js";
import { badRequest, conflict, gone, notFound, tooMany } from "../errors/api-error.js";
import { canonicalJson, identityOf } from "../queue/canonical-payload.js";
import type { LoraSettings, Model } from "../store/models-table.js";
import type { RequestKind } from "../store/requests-table.js";
import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { Context } from "../context/context.js";
import type { ModelLanes } from "./model-lanes.js";
import { looseRequestId, modelRequestId } from "./request-ids.js";
import { closedMessage, type Sessions } from "./sessions.js";
import { checkMetadata } from "./user-metadata.js";

const defaultAlpha = 32;
const maxRank = 256;

/** A request for a model, ready to be accepted. */
export interface ModelRequest {
  readonly modelId: string;
  readonly seq: number | null;
  readonly kind: RequestKind;
  readonly payload: Uint8Array;
  /** What a retry has in common with the first attempt. @default the payload */
  readonly identity?: Uint8Array;
  readonly idempotencyKey: string | null;
}

type UserMetadata = Readonly<Record<string, unknown>> | null;

/** Training runs: how they begin, and how requests for them are accepted. */
export class Models {
  readonly #context: Context;
  readonly #sessions: Sessions;
  readonly #bases: BaseModels;
  readonly #checkpoints: Checkpoints;
  readonly #lanes: ModelLanes;

  constructor(
    context: Context,
    parts: { sessions: Sessions; bases: BaseModels; checkpoints: Checkpoints; lanes: ModelLanes },
  ) {
    this.#context = context;
    this.#sessions = parts.sessions;
    this.#bases = parts.bases;
    this.#checkpoints = parts.checkpoints;
    this.#lanes = parts.lanes;
  }

  /** Accepts the creation of a model with a new adapter. */
  async create(caller: Principal, request: WireValue<"CreateModelRequest">): Promise<string> {
    this.#bases.check(request.baseModel);
    const config = checkLoraConfig(request.loraConfig ?? { rank: 32 }, "lora_config");
    if (config.rank > maxRank) throw badRequest("lora_config.rank", `must be at most ${maxRank}`);
    const lora: LoraSettings = {
      rank: config.rank,
      alpha: defaultAlpha,
      seed: String(config.seed ?? randomSeed()),
      trainAttn: config.trainAttn,
      trainMlp: config.trainMlp,
      trainUnembed: config.trainUnembed,
    };
    const payload = canonicalJson("CreateModelRequest", request);
    return this.#begin(caller, {
      sessionId: request.sessionId,
      modelSeqId: request.modelSeqId,
      baseModel: request.baseModel,
      userMetadata: request.userMetadata,
      lora,
      kind: "create_model",
      payload,
      identity: identityOf("create_model", payload),
    });
  }

  /** Accepts the creation of a model from a checkpoint; loading it is the model's first request. */
  async createFromCheckpoint(
    caller: Principal,
    request: WireValue<"LoadWeightsRequest">,
    readers: readonly string[],
  ): Promise<string> {
    const { sessionId, modelSeqId } = request;
    if (sessionId === null || modelSeqId === null) {
      throw badRequest("load_weights", "needs model_id, or session_id together with model_seq_id");
    }
    const checkpoint = this.#checkpoints.readable(request.path, readers);
    const payload = encodeLoadOrder({ request, readers });
    return this.#begin(caller, {
      sessionId,
      modelSeqId,
      baseModel: request.baseModel ?? checkpoint.baseModel,
      userMetadata: request.userMetadata,
      lora: checkpoint.lora,
      kind: "load_weights",
      payload,
      identity: identityOf("load_weights", payload),
    });
  }

  /** Accepts a request for a model. */
  async submit(caller: Principal, request: ModelRequest): Promise<string> {
    const { modelId, seq, kind, payload } = request;
    const model = this.owned(modelId, caller);
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
    const { store, ledger } = this.#context;
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
      },
      () => {
        this.#refuseEnded(store.models.get(modelId) ?? model);
        this.#refuseOverload(modelId, seq, payload.length);
      },
    );
    if (head) this.#lanes.get(modelId)?.add(head);
    return requestId;
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
        tokenizerId: base.location,
      },
    };
  }

  /** A model of the caller, live or past. */
  owned(modelId: string, caller: Principal): Model {
    const model = this.#context.store.models.get(modelId);
    if (model?.owner === caller.owner) return model;
    throw notFound(`model ${modelId}`);
  }

  async #begin(
    caller: Principal,
    request: {
      sessionId: string;
      modelSeqId: number;
      baseModel: string;
      userMetadata: UserMetadata;
      lora: LoraSettings;
      kind: RequestKind;
      payload: Uint8Array;
      identity: Uint8Array;
    },
  ): Promise<string> {
    const { store, ledger, clock, logger } = this.#context;
    const { sessionId, baseModel } = request;
    this.#sessions.touch(sessionId, caller);
    this.#bases.check(baseModel);
    checkMetadata("user_metadata", request.userMetadata);
    if (request.modelSeqId < 0) throw badRequest("model_seq_id", "must be 0 or more");
    const modelId = `${sessionId}:train:${request.modelSeqId}`;
    const now = clock.now();
    const model: Model = {
      modelId,
      sessionId,
      owner: caller.owner,
      baseModel,
      lora: request.lora,
      userMetadata: request.userMetadata,
      state: "creating",
      stateReason: null,
      nextSeq: 0,
      applied: 0,
      createdAt: now,
      lastRequestAt: now,
    };
    const requestId = modelRequestId(modelId, 0);
    const head = await ledger.accept(
      {
        requestId,
        owner: caller.owner,
        sessionId,
        modelId,
        samplerId: null,
        seq: 0,
        kind: request.kind,
        identity: request.identity,
        payload: request.payload,
      },
      () => {
        const session = store.sessions.get(sessionId);
        if (session && session.closedAt !== null) throw gone(closedMessage(session));
        if (store.models.get(modelId)) {
          throw conflict(`model ${modelId} exists already; use another model_seq_id`);
        }
        store.models.insert(model);
        store.audit.add({ at: now, owner: caller.owner, event: "model.created", modelId });
      },
    );
    if (head) {
      logger.info("model accepted", { model: modelId, base: baseModel, rank: request.lora.rank });
      this.#lanes.open(model).add(head);
    }
    return requestId;
  }

  #refuseEnded(model: Model): void {
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

function randomSeed(): bigint {
  return randomBytes(8).readBigUInt64LE() >> 11n;
}
