import { decodeJson, type WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import { badRequest, notFound, tooMany } from "../errors/api-error.js";
import { StoppedError, toFailure } from "../errors/failure.js";
import {
  type Journal,
  type QueueNote,
  samplerRequestId,
  unsequencedRequestId,
} from "../journal/journal.js";
import type { LoopTurns } from "../loop-turns.js";
import type { ServerLimits } from "../prices.js";
import type { Logger } from "../log/logger.js";
import type { ServerScheduler, Turn } from "../scheduler.js";
import { canonicalJson, identityOf } from "../store/content.js";
import type { RequestRow, Settled } from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Usage, UsageAccount } from "../store/usage-table.js";
import type { Clock } from "../time/clock.js";
import { encodedResponse } from "./sample-options.js";
import { untilAborted, type SampleRequests } from "./sample-requests.js";

type SampleRequest = WireValue<"SampleRequest">;

/** What accepted samples are run with. */
export interface SamplerParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly scheduler: ServerScheduler;
  readonly loop: LoopTurns;
  readonly requests: SampleRequests;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
}

/** What a sample request came to. */
interface Sampled {
  readonly settled: Settled;
  readonly account: UsageAccount;
  readonly usage: readonly Usage[];
  /** Tokens that were read and sampled. */
  readonly tokens: number;
}

/** A request that waits or runs. */
interface Pending {
  readonly request: RequestRow;
  readonly numSamples: number;
  readonly abort: AbortController;
  isRunning: boolean;
  /** Resolves when its outcome is committed, or when it is left to the next start. */
  ended: Promise<void>;
}

/**
 * Accepted sample requests on their way through the engine.
 *
 * - Owners take turns, and so do the sessions of one; within one the order is that of acceptance.
 * - The engine gets a bounded number of sequences at a time and batches them itself; a request larger
 *   than the bound runs alone.
 * - A request without a seed gets one from its id: sampling again after a crash gives the same tokens.
 */
export class Sampler {
  readonly #parts: SamplerParts;
  readonly #pending = new Map<string, Pending>();
  readonly #pendingByOwner = new Map<string, number>();
  /** Why what waits is left to the next start. */
  #pausing: StoppedError | undefined;

  constructor(parts: SamplerParts) {
    this.#parts = parts;
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  /** Accepts a sample request; returns its id. */
  async accept(
    caller: Principal,
    request: SampleRequest,
    idempotencyKey: string | null,
  ): Promise<string> {
    const { requests, journal } = this.#parts;
    const { owner } = caller;
    const target = await requests.check(caller, request);
    // A schema that cannot be followed is refused at once, too.
    await requests.constraint(owner, request);
    const { samplingSessionId: samplerId, seqId, numSamples } = request;
    const requestId =
      samplerId !== null && seqId !== null
        ? samplerRequestId(samplerId, seqId)
        : unsequencedRequestId(owner, idempotencyKey);
    const payload = canonicalJson("SampleRequest", request);
    const accepted = await journal.accept(
      {
        requestId,
        owner,
        sessionId: target.sessionId,
        modelId: null,
        samplerId,
        seq: null,
        kind: "sample",
        identity: identityOf("sample", payload),
        payload,
      },
      () => this.#refuseOverload(owner),
    );
    if (accepted) this.add(accepted, numSamples);
    return requestId;
  }

  /** Takes in a request that is accepted already. */
  add(request: RequestRow, numSamples: number): void {
    if (this.#pausing) return;
    const { owner, requestId } = request;
    this.#pendingByOwner.set(owner, this.#pendingOf(owner) + 1);
    const abort = new AbortController();
    const pending: Pending = {
      request,
      numSamples,
      abort,
      isRunning: false,
      ended: Promise.resolve(),
    };
    this.#pending.set(requestId, pending);
    pending.ended = this.#handle(pending);
  }

  /** True while a request of a session waits or runs. */
  hasPending(sessionId: string): boolean {
    return this.#ofSession(sessionId).length > 0;
  }

  view(): {
    runningSequences: number;
    waiting: number;
    waitingSessions: number;
    note: QueueNote | null;
  } {
    const { taken, waiting, groups } = this.#parts.scheduler.load("samples");
    return {
      runningSequences: taken,
      waiting,
      waitingSessions: groups,
      note: waiting === 0 ? null : this.#fullNote(),
    };
  }

  /** Why a request has not finished yet. */
  note({ requestId }: RequestRow): QueueNote {
    const isRunning = this.#pending.get(requestId)?.isRunning === true;
    return isRunning ? { queueState: "active", reason: "sampling" } : this.#fullNote();
  }

  /** Gives up a sample, whether it waits or runs; one that has ended stays as it is. */
  async cancel(caller: Principal, requestId: string): Promise<void> {
    const request = this.#parts.journal.find(requestId);
    if (request?.owner !== caller.owner) throw notFound(`request ${requestId}`);
    if (request.kind !== "sample") {
      throw badRequest("request_id", `${requestId} is no sample; only samples can be cancelled`);
    }
    const pending = this.#pending.get(requestId);
    pending?.abort.abort(new StoppedError("the sample was cancelled by its client"));
    await pending?.ended;
  }

  /** Gives up everything of a session; resolves when that is committed for what waited. */
  async stopSession(sessionId: string, reason: string): Promise<void> {
    const error = new StoppedError(reason);
    const pending = this.#ofSession(sessionId);
    const waiting = pending.filter(({ isRunning }) => !isRunning);
    for (const { abort } of pending) abort.abort(error);
    await Promise.all(waiting.map(({ ended }) => ended));
  }

  /** Lets what runs finish and starts nothing more; what waits stays in the journal. */
  async pause(): Promise<void> {
    this.#pausing = new StoppedError("the server is shutting down", "server");
    const pending = [...this.#pending.values()];
    for (const { abort, isRunning } of pending) if (!isRunning) abort.abort(this.#pausing);
    await Promise.all(pending.map(({ ended }) => ended));
  }

  /** Leaves what still runs to the next start. */
  abandon(): void {
    for (const { abort } of this.#pending.values()) abort.abort(this.#pausing);
  }

  /** Carries a request to its committed outcome, or leaves it to the next start; never rejects. */
  async #handle(pending: Pending): Promise<void> {
    const { request, numSamples, abort } = pending;
    const { owner, sessionId, requestId } = request;
    const { scheduler, clock, limits } = this.#parts;
    const size = Math.min(numSamples, limits.maxTurnSequences);
    const place = { resource: "samples", owner, group: sessionId ?? "", size } as const;
    let startedAt: number | null = null;
    try {
      const turn = await scheduler.turn(place, abort.signal);
      pending.isRunning = true;
      startedAt = clock.now();
      const work = this.#run(request, turn, abort.signal).finally(() => turn.end());
      const sampled = await untilAborted(work, abort.signal);
      await this.#finish(request, startedAt, sampled);
    } catch (error) {
      const reason: unknown = abort.signal.aborted ? abort.signal.reason : error;
      if (reason !== this.#pausing) await this.#fail(request, startedAt, reason);
    } finally {
      this.#pending.delete(requestId);
      const left = this.#pendingOf(owner) - 1;
      if (left > 0) this.#pendingByOwner.set(owner, left);
      else this.#pendingByOwner.delete(owner);
    }
  }

  async #run(
    { requestId, owner, sessionId }: RequestRow,
    turn: Turn,
    signal: AbortSignal,
  ): Promise<Sampled> {
    const { journal, requests, clock } = this.#parts;
    const request = decodeJson("SampleRequest", await journal.payload(requestId));
    const target = requests.resolve(request, owner);
    requests.noteUse(target);
    const order = await requests.toOrder(target, owner, request, requestId);
    const begunAt = clock.elapsed();
    const how = { owner, group: sessionId ?? "", turn, signal };
    const [result] = await requests.run(target, [order], how);
    const engineMs = clock.elapsed() - begunAt;
    const cached = result!.promptCacheHitTokens;
    const made = result!.samples.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const bytes = await this.#parts.loop.run(owner, encodedResponse(request, result!));
    const { baseModel, checkpoint } = target;
    return {
      settled: { state: "done", resultType: "SampleResponse", bytes, engineMs },
      account: { owner, sessionId, baseModel, modelId: checkpoint?.runId ?? null },
      usage: [
        { kind: "sampling_prefill", amount: order.prompt.length - cached },
        { kind: "sampling_prefill_cached", amount: cached },
        { kind: "sampling_sample", amount: made },
      ],
      tokens: order.prompt.length + made,
    };
  }

  /** Commits a result with its usage. */
  async #finish(
    request: RequestRow,
    startedAt: number,
    { settled, account, usage, tokens }: Sampled,
  ): Promise<void> {
    const { journal, store, clock } = this.#parts;
    const finishedAt = clock.now();
    const facts = { startedAt, finishedAt, applied: null, tokens };
    await journal.finish(request, settled, facts, () =>
      store.usage.add(account, usage, finishedAt),
    );
  }

  /** Commits that a request failed; never rejects. */
  async #fail(request: RequestRow, startedAt: number | null, error: unknown): Promise<void> {
    const { journal, clock, logger } = this.#parts;
    const facts = { startedAt, finishedAt: clock.now(), applied: null, tokens: 0 };
    try {
      await journal.finish(request, toFailure(error, logger), facts);
    } catch (problem) {
      const { requestId } = request;
      logger.error("cannot record a sample", { request: requestId, error: String(problem) });
    }
  }

  #refuseOverload(owner: string): void {
    const pending = this.#pendingOf(owner);
    if (pending < this.#parts.limits.maxPendingSamples) return;
    throw tooMany(`${pending} sample requests are waiting; slow down`, 1000);
  }

  #pendingOf(owner: string): number {
    return this.#pendingByOwner.get(owner) ?? 0;
  }

  #ofSession(sessionId: string): Pending[] {
    return [...this.#pending.values()].filter(({ request }) => request.sessionId === sessionId);
  }

  #fullNote(): QueueNote {
    const { waiting } = this.#parts.scheduler.load("samples");
    const reason = `all places for sampling are taken, and ${waiting} requests are waiting for one`;
    return { queueState: "paused_capacity", reason };
  }
}
