import type { WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import { pathOf } from "../checkpoints/checkpoint-names.js";
import { badRequest, conflict, notFound } from "../errors/api-error.js";
import type { Logger } from "../log/logger.js";
import type { Sessions } from "../sessions/sessions.js";
import type { Clock } from "../time/clock.js";
import { resolveTarget, type TargetParts } from "./sample-target.js";

/** What sampling sessions are opened with. */
export interface SamplingSessionsParts extends TargetParts {
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Sampling sessions: names for weights that clients sample from. */
export class SamplingSessions {
  readonly #parts: SamplingSessionsParts;

  constructor(parts: SamplingSessionsParts) {
    this.#parts = parts;
  }

  /** Opens a sampling session; repeating the call gives the same one. */
  async create(
    caller: Principal,
    request: WireValue<"CreateSamplingSessionRequest">,
  ): Promise<string> {
    const { store, clock, sessions } = this.#parts;
    const { sessionId, baseModel, samplingSessionSeqId: seq } = request;
    sessions.touch(sessionId, caller);
    if (seq < 0) throw badRequest("sampling_session_seq_id", "must be 0 or more");
    const address = { samplingSessionId: null, modelPath: request.modelPath, baseModel };
    const target = resolveTarget(this.#parts, address, caller.owner);
    const modelPath = target.checkpoint && pathOf(target.checkpoint);
    this.#learnAbout(target.baseModel);
    const samplerId = `${sessionId}:sample:${seq}`;
    await store.write(() => {
      const known = store.samplers.get(samplerId);
      if (!known) {
        const { owner } = caller;
        const createdAt = clock.now();
        const sampler = { samplerId, sessionId, owner, baseModel: target.baseModel, modelPath };
        store.samplers.insert({ ...sampler, createdAt });
      } else if (known.modelPath !== modelPath || known.baseModel !== target.baseModel) {
        throw conflict(`sampling session ${samplerId} was already made for other weights`);
      }
    });
    return samplerId;
  }

  /** Takes one more client into a sampling session; returns its number. */
  async join(caller: Principal, samplerId: string): Promise<number> {
    const { store, sessions } = this.#parts;
    const sampler = store.samplers.get(samplerId);
    if (sampler?.owner !== caller.owner) throw notFound(`sampling session ${samplerId}`);
    sessions.touchSampler(samplerId, sampler.sessionId, caller);
    return store.write(() => store.samplers.join(samplerId));
  }

  /** Finds out in the background what checking requests for this model needs. */
  #learnAbout(baseModel: string): void {
    this.#parts.bases.find(baseModel).catch((error: unknown) => {
      this.#parts.logger.warn("a base model cannot be read", {
        model: baseModel,
        error: error instanceof Error ? error.message : String(error),
      });
    });
  }
}
