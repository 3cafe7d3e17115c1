import { createHash, randomUUID } from "node:crypto";
import type { SampleRequest as EngineRequest, SampleResult } from "@tinker-ts/engine";
import { decodeJson, encodeProto, type WireInput, type WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Context } from "../context/context.js";
import { runSample, type SamplerParts } from "../engine-host/sample-runner.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import type { SampleTarget } from "../engine-host/sample-target.js";
import { badRequest, conflict, tooMany } from "../errors/api-error.js";
import { canonicalJson, identityOf } from "../queue/canonical-payload.js";
import type { Usage } from "../store/usage-table.js";
import type { DirectSamples } from "./direct-samples.js";
import { looseRequestId, samplerRequestId } from "./request-ids.js";
import { resolveTarget, pathTarget, type Addressees } from "./resolve-target.js";
import { checkSampleRequest, toSampleOrder, toSampleResponse } from "./sample-order.js";
import { SampleQueue, type QueuedSample, type SampleOutcome } from "./sample-queue.js";
import { hasSchema, schemaConstraint } from "./sampling-extensions.js";
import type { Sessions } from "./sessions.js";

type SampleRequest = WireValue<"SampleRequest">;

/** Requests that wait are kept as they are when they are small and few; the store has all of them. */
const smallBytes = 16 * 1024;
const maxKept = 256;

/** What sampling works with. */
export interface SamplesParts extends SamplerParts, Addressees {
  readonly sessions: Sessions;
  readonly direct: DirectSamples;
}

/** Told of each token as it comes. */
export type OnToken = NonNullable<EngineRequest["onToken"]>;

/** Samples and tells of every token. */
export type SampleStream = (
  onToken: OnToken,
  signal: AbortSignal,
) => Promise<WireInput<"SampleResponse">>;

/** Sampling: sampling sessions, queued requests, and streams. */
export class Samples {
  readonly #context: Context;
  readonly #parts: SamplesParts;
  readonly queue: SampleQueue;
  readonly direct: DirectSamples;

  constructor(context: Context, parts: SamplesParts) {
    this.#context = context;
    this.#parts = parts;
    this.direct = parts.direct;
    this.queue = new SampleQueue(context, (entry, signal) => this.#runQueued(entry, signal));
  }

  /** Opens a sampling session; repeating the call gives the same one. */
  async createSession(
    caller: Principal,
    request: WireValue<"CreateSamplingSessionRequest">,
  ): Promise<string> {
    const { store, clock } = this.#context;
    const { sessionId, baseModel, modelPath, samplingSessionSeqId: seq } = request;
    this.#parts.sessions.touch(sessionId, caller);
    if (seq < 0) throw badRequest("sampling_session_seq_id", "must be 0 or more");
    const target =
      modelPath === null
        ? resolveTarget(
            this.#parts,
            { samplingSessionId: null, modelPath, baseModel },
            caller.owner,
          )
        : pathTarget(this.#parts, modelPath, baseModel, caller.owner);
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

  /** Accepts a sample request. */
  async submit(
    caller: Principal,
    request: SampleRequest,
    { idempotencyKey, holdMs }: { idempotencyKey: string | null; holdMs: number },
  ): Promise<string> {
    const { limits, ledger } = this.#context;
    const target = this.#admit(caller, request);
    // A schema that cannot be followed is told of at once, too.
    if (hasSchema(request.samplingParams)) await this.#constraint(caller.owner, request);
    const { samplingSessionId: samplerId, seqId } = request;
    const place = samplerId !== null && seqId !== null ? ([samplerId, seqId] as const) : null;
    const requestId = place
      ? samplerRequestId(...place)
      : looseRequestId(caller.owner, idempotencyKey);
    const isNext = place !== null && this.#parts.samplers.isNext(...place);
    const payload = canonicalJson("SampleRequest", request);
    const isSmall = payload.length <= smallBytes && this.queue.pendingCount < maxKept;
    const { numSamples } = request;
    const order = isSmall ? request : undefined;
    let isBegun = false;
    const head = await ledger.accept(
      {
        requestId,
        owner: caller.owner,
        sessionId: target.sessionId,
        modelId: null,
        samplerId,
        seq: null,
        kind: "sample",
        identity: identityOf("sample", payload),
        payload,
      },
      () => {
        const pending = this.queue.pendingOf(caller.owner) - (isBegun ? 1 : 0);
        if (pending >= limits.maxPendingSamples) {
          throw tooMany(`${pending} sample requests are waiting; slow down`, 1000);
        }
      },
      (arriving, accepted) => {
        const mayBegin = isSmall && this.queue.hasPlace(arriving);
        isBegun = mayBegin && (isNext || !ledger.find(requestId));
        if (isBegun) this.queue.begin({ request: arriving, numSamples, order, target }, accepted);
        return isBegun;
      },
      holdMs,
    );
    if (head && !isBegun) this.queue.add({ request: head, numSamples, order });
    return requestId;
  }

  /** Checks a request and returns the way to sample as soon as it is its turn; nothing of it is kept. */
  openStream(caller: Principal, request: SampleRequest): SampleStream {
    const target = this.#admit(caller, request);
    this.direct.places.check(caller.owner);
    const seeded = withSeed(request, randomUUID());
    return async (onToken, signal) => {
      const facts = await this.#parts.bases.find(target.baseModel);
      const order = {
        ...toSampleOrder(seeded, facts),
        ...(await this.#constraint(caller.owner, request)),
      };
      const [result] = await this.direct.run(caller, target, [order], {
        signal,
        route: "stream_sample",
        onToken: (_, event) => onToken(event),
      });
      return toSampleResponse(result!);
    };
  }

  /** Checks all that is known already, so that a mistake is told at once. */
  #admit(caller: Principal, request: SampleRequest): SampleTarget {
    checkSampleRequest(request, this.#context.limits.maxNumSamples);
    const target = resolveTarget(this.#parts, request, caller.owner);
    if (target.sessionId !== null) this.#parts.sessions.touch(target.sessionId, caller);
    const facts = this.#parts.bases.known(target.baseModel);
    if (facts) toSampleOrder(request, facts);
    return target;
  }

  async #runQueued(
    { request: head, order, target: known }: QueuedSample,
    signal: AbortSignal,
  ): Promise<SampleOutcome> {
    const { ledger } = this.#context;
    const request = order ?? decodeJson("SampleRequest", await ledger.payload(head.requestId));
    const target = known ?? resolveTarget(this.#parts, request, head.owner);
    if (target.checkpoint) this.#parts.checkpoints.noteUse(target.checkpoint);
    const seeded = withSeed(request, head.requestId);
    const { result, usage, engineMs } = await this.#sample(target, head.owner, seeded, signal);
    return {
      bytes: encodeProto("SampleResponse", toSampleResponse(result)),
      account: {
        owner: head.owner,
        sessionId: head.sessionId,
        baseModel: target.baseModel,
        modelId: target.checkpoint?.runId ?? null,
      },
      usage,
      engineMs,
    };
  }

  async #sample(
    target: SampleTarget,
    owner: string,
    request: SampleRequest,
    signal: AbortSignal,
  ): Promise<{ result: SampleResult; usage: Usage[]; engineMs: number }> {
    const facts = await this.#parts.bases.find(target.baseModel);
    const order = toSampleOrder(request, facts);
    const constraint = await this.#constraint(owner, request);
    const { clock } = this.#context;
    const begunAt = clock.elapsed();
    const result = await runSample(this.#parts, target, { ...order, ...constraint, signal });
    const engineMs = clock.elapsed() - begunAt;
    const cached = result.promptCacheHitTokens;
    const sampled = result.samples.reduce((sum, { tokens }) => sum + tokens.length, 0);
    return {
      result,
      engineMs,
      usage: [
        { kind: "sampling_prefill", amount: order.prompt.length - cached },
        { kind: "sampling_prefill_cached", amount: cached },
        { kind: "sampling_sample", amount: sampled },
      ],
    };
  }

  /** What a sample must look like, if its request says so. */
  async #constraint(
    owner: string,
    { samplingParams }: SampleRequest,
  ): Promise<Pick<SampleOrder, "constraint">> {
    if (!hasSchema(samplingParams)) return {};
    return schemaConstraint(this.#context.grammars, owner, samplingParams);
  }

  /** Finds out in the background what checking requests for this model needs. */
  #learnAbout(baseModel: string): void {
    this.#parts.bases.find(baseModel).catch((error: unknown) => {
      this.#context.logger.warn("a base model cannot be read", {
        model: baseModel,
        error: error instanceof Error ? error.message : String(error),
      });
    });
  }
}

/** A request without a seed gets one from its id, so that doing it again after a crash gives the same. */
function withSeed(request: SampleRequest, requestId: string): SampleRequest {
  if (request.samplingParams.seed !== null) return request;
  const seed = createHash("sha256").update(requestId).digest().readUIntBE(0, 6);
  return { ...request, samplingParams: { ...request.samplingParams, seed } };
}
