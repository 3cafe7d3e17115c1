import { randomBytes } from "node:crypto";
import { checkLoraConfig, type WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { BaseModels } from "../engine-host/base-models.js";
import { badRequest, conflict, gone } from "../errors/api-error.js";
import { type Journal, modelRequestId } from "../journal/journal.js";
import type { Logger } from "../log/logger.js";
import { checkMetadata, closedMessage, type Sessions } from "../sessions/sessions.js";
import type { LoraSettings, Model } from "../store/models-table.js";
import { canonicalJson, identityOf } from "../store/content.js";
import type { RequestKind } from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { encodeLoadOrder } from "./operations/load.js";
import { checkOptimizer } from "./optimizers.js";
import type { TrainingRuns } from "./training-runs.js";

const defaultAlpha = 32;
const maxRank = 256;

/** A model that is about to begin. */
interface NewModel {
  readonly sessionId: string;
  readonly modelSeqId: number;
  readonly baseModel: string;
  readonly userMetadata: Readonly<Record<string, unknown>> | null;
  readonly lora: LoraSettings;
  /** Its first request, number 0. */
  readonly kind: RequestKind;
  readonly payload: Uint8Array;
  readonly identity: Uint8Array;
}

/** What models are created with. */
export interface ModelCreationParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly sessions: Sessions;
  readonly bases: BaseModels;
  readonly checkpoints: Checkpoints;
  readonly runs: TrainingRuns;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How training runs begin. */
export class ModelCreation {
  readonly #parts: ModelCreationParts;

  constructor(parts: ModelCreationParts) {
    this.#parts = parts;
  }

  /** Accepts the creation of a model with a new adapter. */
  async fresh(caller: Principal, request: WireValue<"CreateModelRequest">): Promise<string> {
    const baseModel = this.#parts.bases.check(request.baseModel);
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
    checkOptimizer("optimizer_config", request.optimizerConfig);
    const payload = canonicalJson("CreateModelRequest", { ...request, optimizerConfig: null });
    return this.#begin(caller, {
      sessionId: request.sessionId,
      modelSeqId: request.modelSeqId,
      baseModel,
      userMetadata: request.userMetadata,
      lora,
      kind: "create_model",
      payload,
      identity: identityOf("create_model", payload),
    });
  }

  /** Accepts the creation of a model from a checkpoint; loading it is the model's first request. */
  async fromCheckpoint(
    caller: Principal,
    request: WireValue<"LoadWeightsRequest">,
    readers: readonly string[],
  ): Promise<string> {
    const { sessionId, modelSeqId } = request;
    if (sessionId === null || modelSeqId === null) {
      throw badRequest("load_weights", "needs model_id, or session_id together with model_seq_id");
    }
    checkOptimizer("optimizer_config", request.optimizerConfig);
    const checkpoint = this.#parts.checkpoints.readable(request.path, readers);
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

  async #begin(caller: Principal, request: NewModel): Promise<string> {
    const { store, journal, sessions, bases, runs, clock, logger } = this.#parts;
    const { sessionId, baseModel } = request;
    sessions.touch(sessionId, caller);
    bases.check(baseModel);
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
      precision: bases.precision(baseModel),
      userMetadata: request.userMetadata,
      state: "creating",
      stateReason: null,
      nextSeq: 0,
      applied: 0,
      createdAt: now,
      lastRequestAt: now,
    };
    const requestId = modelRequestId(modelId, 0);
    const accepted = await journal.accept(
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
    if (accepted) {
      logger.info("model accepted", { model: modelId, base: baseModel, rank: request.lora.rank });
      runs.open(model).add(accepted);
    }
    return requestId;
  }
}

function randomSeed(): bigint {
  return randomBytes(8).readBigUInt64LE() >> 11n;
}
