import { createHash } from "node:crypto";
import type { SampleRequest as EngineRequest, SampleResult } from "@tinker-ts/engine";
import type { WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Grammars } from "../decoding/grammars.js";
import type { EngineGuard } from "../engine-host/engine-guard.js";
import type { SamplerWeights } from "../engine-host/sampler-weights.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import type { ServerLimits } from "../limits.js";
import type { Sessions } from "../sessions/sessions.js";
import { hasSchema, schemaConstraint } from "./extensions.js";
import { checkSampleRequest, toSampleOrder } from "./sample-options.js";
import { resolveTarget, type SampleTarget, type TargetParts } from "./sample-target.js";

type SampleRequest = WireValue<"SampleRequest">;

/** What sample requests are checked and run with. */
export interface SampleRequestsParts extends TargetParts {
  readonly weights: SamplerWeights;
  readonly sessions: Sessions;
  readonly grammars: Grammars;
  readonly guard: EngineGuard;
  readonly limits: ServerLimits;
}

/** From a sample request to its target, its options, and the engine. */
export class SampleRequests {
  readonly #parts: SampleRequestsParts;

  constructor(parts: SampleRequestsParts) {
    this.#parts = parts;
  }

  /** Checks all that can be checked before a model is loaded, so that a mistake is refused at once. */
  async check(caller: Principal, request: SampleRequest): Promise<SampleTarget> {
    const { bases, sessions, limits } = this.#parts;
    if (request.targetPromptLogprobs) await this.#learnVocabulary(caller, request);
    checkSampleRequest(request, limits.maxNumSamples);
    const target = this.resolve(request, caller.owner);
    const { sessionId, samplerId } = target;
    if (sessionId !== null && samplerId !== null) {
      sessions.touchSampler(samplerId, sessionId, caller);
    }
    const facts = bases.known(target.baseModel);
    if (facts) toSampleOrder(request, facts);
    return target;
  }

  /** Finds what a request is addressed to. */
  resolve(address: Parameters<typeof resolveTarget>[1], owner: string): SampleTarget {
    return resolveTarget(this.#parts, address, owner);
  }

  /** What a sample must look like, if its request has a schema. */
  async constraint(
    owner: string,
    { samplingParams }: SampleRequest,
  ): Promise<Pick<SampleOrder, "constraint">> {
    if (!hasSchema(samplingParams)) return {};
    return schemaConstraint(this.#parts.grammars, owner, samplingParams);
  }

  /** What the engine is asked for, with a seed made from the id where it has none; refuses what the model cannot do. */
  async toOrder(
    target: SampleTarget,
    owner: string,
    request: SampleRequest,
    id: string,
  ): Promise<SampleOrder> {
    const facts = await this.#parts.bases.find(target.baseModel);
    const order = toSampleOrder(withSeed(request, id), facts);
    return { ...order, ...(await this.constraint(owner, request)) };
  }

  /** Notes that the weights of a target are in use, so that ephemeral ones stay. */
  noteUse({ checkpoint }: SampleTarget): void {
    if (checkpoint) this.#parts.checkpoints.noteUse(checkpoint);
  }

  /**
   * Samples from a target. When the engine breaks, the request may be tried again, since it has changed
   * nothing; not so when its tokens have already been sent.
   */
  run(target: SampleTarget, order: Omit<EngineRequest, "adapter">): Promise<SampleResult> {
    const { bases, weights, guard } = this.#parts;
    return guard.run(order.onToken ? 1 : 2, async () => {
      const model = await bases.load(target.baseModel, target.checkpoint?.runId);
      if (!target.checkpoint) return model.sample(order);
      return weights.use(target.checkpoint, (adapter) => model.sample({ ...order, adapter }));
    });
  }

  /** Finds out, where it is not known yet, which of the tokens to score a model on this machine has. */
  async #learnVocabulary({ owner }: Principal, request: SampleRequest): Promise<void> {
    const { baseModel } = this.resolve(request, owner);
    // A model that cannot be read fails the request when it is its turn.
    await this.#parts.bases.peek(baseModel).catch(() => undefined);
  }
}

function withSeed(request: SampleRequest, id: string): SampleRequest {
  if (request.samplingParams.seed !== null) return request;
  const seed = createHash("sha256").update(id).digest().readUIntBE(0, 6);
  return { ...request, samplingParams: { ...request.samplingParams, seed } };
}
