import { pathOf } from "../checkpoints/checkpoint-names.js";
import type { Workers } from "../workers/workers.js";
import type { EngineGuard } from "../engine-host/engine-guard.js";
import { gone, tooMany } from "../errors/api-error.js";
import { DamagedError } from "../errors/damaged-error.js";
import { isAdapterBroken, StoppedError } from "../errors/failure.js";
import type { NewRequest, QueueNote } from "../journal/journal.js";
import type { ServerLimits } from "../prices.js";
import type { ServerScheduler, Turn } from "../scheduler.js";
import type { CheckpointKind } from "../store/checkpoints-table.js";
import type { Model, ModelStatus } from "../store/models-table.js";
import { identityOf } from "../store/content.js";
import type { RequestRow } from "../store/requests-table.js";
import type { LiveModels } from "./live-models.js";
import type { Operations } from "./operations/index.js";
import { jsonResult, tokensOf, type Done } from "./operations/operation.js";
import { saveWithoutRequest, type SaveParts } from "./operations/save.js";
import {
  notCreated,
  RunOutcomes,
  type OutcomeParts,
  type Performed,
  type Progress,
} from "./run-outcomes.js";
import { SequenceQueue } from "./sequence-queue.js";
import { noOrphans } from "./snapshots.js";

/** What training runs work with. */
export interface RunParts extends SaveParts, OutcomeParts {
  readonly scheduler: ServerScheduler;
  readonly liveModels: LiveModels;
  readonly operations: Operations;
  readonly workers: Workers;
  readonly guard: EngineGuard;
  readonly limits: ServerLimits;
}

/** A request for a model. */
export interface RunRequest extends Pick<
  NewRequest,
  "requestId" | "seq" | "kind" | "payload" | "digest"
> {
  /** @default made from the payload */
  readonly identity?: Uint8Array | undefined;
}

/** The state of a run's queue. */
export interface RunView {
  readonly running: {
    readonly kind: string;
    readonly seq: number | null;
    readonly since: number;
  } | null;
  readonly waiting: number;
  /** When the oldest request that waits was accepted. */
  readonly oldestAt: number | null;
  /** Why it waits, as polls return it. */
  readonly note: QueueNote | null;
  readonly isHeld: boolean;
}

/** How often a request is tried when the engine breaks under it. */
const maxAttempts = 2;

/**
 * One model and everything about its order: requests are accepted, wait for their numbers, take a turn, run and
 * are committed, one at a time.
 *
 * - Each request runs alone: repeating the journal must give the same bits.
 * - The next one starts after the outcome of the one before is committed. That outcome, the progress of the model
 *   and the usage are one transaction.
 * - A request that fails leaves the model as it was. When the engine may have changed it all the same, the model
 *   in memory is discarded and brought back from its journal.
 * - Stopping gives up what runs and fails what waits; pausing leaves both to the next start.
 */
export class TrainingRun {
  readonly model: Model;
  /** Resolves when it has ended by itself: unloaded, or not created. */
  readonly ended: Promise<void>;
  readonly #parts: RunParts;
  readonly #outcomes: RunOutcomes;
  readonly #waiting: SequenceQueue<RequestRow>;
  readonly #saves: (() => Promise<void>)[] = [];
  readonly #stopping = new AbortController();
  readonly #pausing = new AbortController();
  /** Ends the waiting for a turn. */
  readonly #noTurn = AbortSignal.any([this.#stopping.signal, this.#pausing.signal]);
  #tail: Promise<void> = Promise.resolve();
  #isBusy = false;
  #running: { readonly request: RequestRow; readonly since: number } | undefined;
  /** Why nothing new is begun, while the run is held. */
  #held: string | null = null;
  #pendingBytes = 0;
  #resolveEnded = (): void => {};

  constructor(parts: RunParts, model: Model) {
    this.#parts = parts;
    this.model = model;
    this.#outcomes = new RunOutcomes(parts, model);
    this.#waiting = new SequenceQueue(model.nextSeq);
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** True while no request and no save is under way. */
  get isIdle(): boolean {
    return !this.#isBusy;
  }

  get isHeld(): boolean {
    return this.#held !== null;
  }

  get pendingCount(): number {
    return this.#waiting.size + (this.#running ? 1 : 0);
  }

  /** Accepts a request; a repeated one changes nothing. */
  async accept(request: RunRequest): Promise<void> {
    const { owner, sessionId, modelId } = this.model;
    const { seq, kind, payload } = request;
    if (this.#isForgotten(request)) return;
    const identity = request.identity ?? identityOf(kind, payload);
    const accepted = await this.#parts.journal.accept(
      { ...request, identity, owner, sessionId, modelId, samplerId: null },
      () => {
        refuseEnded(this.#parts.store.models.status(modelId) ?? this.model);
        if (kind !== "unload_model") this.#refuseOverload(seq, payload.length);
      },
    );
    if (accepted) this.add(accepted);
  }

  /** Takes in a request that is accepted already. */
  add(request: RequestRow): void {
    if (this.#stopping.signal.aborted) {
      void this.#fail(request, this.#stopping.signal.reason, notStarted);
    } else if (!this.#pausing.signal.aborted) {
      this.#waiting.add(request);
      this.#pendingBytes += request.payloadBytes;
      this.#wake();
    }
  }

  /** Begins nothing new until `release`; polls return the reason. */
  hold(reason: string): void {
    this.#held = reason;
  }

  release(): void {
    this.#held = null;
    this.#wake();
  }

  /** Saves the weights between two requests, also while the run is held; returns the path. */
  saveNow(save: { readonly type: CheckpointKind; readonly name: string }): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#saves.push(() => this.#save(save).then(resolve, reject));
      this.#wake();
    });
  }

  view(): RunView {
    const { oldest } = this.#waiting;
    const running = this.#running;
    const note = running ? this.#turnNote() : oldest && this.note(oldest);
    return {
      running: running
        ? { kind: running.request.kind, seq: running.request.seq, since: running.since }
        : null,
      waiting: this.#waiting.size,
      oldestAt: oldest?.acceptedAt ?? null,
      note: note ?? null,
      isHeld: this.isHeld,
    };
  }

  /** Why a request has not finished yet. */
  note(request: RequestRow): QueueNote {
    const running = this.#running?.request;
    if (running?.requestId === request.requestId) {
      return this.#turnNote() ?? { queueState: "active", reason: `${request.kind} is running` };
    }
    if (this.#held !== null) return { queueState: "paused_capacity", reason: this.#held };
    const missing = this.#waiting.missingSeq;
    if (missing !== null && request.seq !== null && !running) {
      return {
        queueState: "paused_capacity",
        reason: `waiting for request ${missing} of this model, which has not arrived`,
      };
    }
    const ahead = Math.max(0, this.#waiting.countBefore(request)) + (running ? 1 : 0);
    return { queueState: "active", reason: `${ahead} requests of this model come first` };
  }

  /** Gives up what runs and fails what waits or comes later, all with this reason. */
  async stop(reason: string): Promise<void> {
    await this.#refuseAll(reason);
    await this.#tail;
  }

  /** Lets what runs finish and starts nothing more; what waits stays in the journal. */
  async pause(): Promise<void> {
    this.#pausing.abort(new StoppedError("the server is shutting down", "server"));
    this.#waiting.drain();
    await this.#tail;
  }

  #wake(): void {
    this.#tail = this.#tail.then(() => this.#drain());
  }

  async #drain(): Promise<void> {
    this.#isBusy = true;
    for (;;) {
      const save = this.#saves.shift();
      const request = save || this.#held !== null ? undefined : this.#waiting.take();
      if (save) await save();
      else if (request) await this.#handle(request);
      else break;
    }
    this.#isBusy = false;
  }

  /** Carries a request to its committed outcome, or leaves it to the next start; never rejects. */
  async #handle(request: RequestRow): Promise<void> {
    this.#running = { request, since: Date.now() };
    this.#pendingBytes -= request.payloadBytes;
    const { clock, liveModels } = this.#parts;
    const { nextSeq } = this.#waiting;
    let startedAt: number | undefined;
    try {
      const performed = await this.#inTurn(request, async () => {
        startedAt = clock.now();
        return this.#perform(request, startedAt);
      });
      await this.#outcomes.commit(request, performed, nextSeq);
    } catch (error) {
      const { signal } = this.#stopping;
      const isLeft = startedAt === undefined && this.#pausing.signal.aborted && !signal.aborted;
      if (!isLeft) {
        await liveModels.discardUncommitted(this.model.modelId);
        const progress = { nextSeq, startedAt: startedAt ?? clock.now() };
        await this.#fail(request, signal.aborted ? signal.reason : error, progress);
      }
    }
    liveModels.release(this.model.modelId);
    this.#running = undefined;
  }

  /** Performs a request in a turn at what it needs. Its commit is not part of the turn. */
  async #inTurn({ kind }: RequestRow, perform: () => Promise<Performed>): Promise<Performed> {
    const { operations, liveModels } = this.#parts;
    const resource =
      kind === "unload_model" || kind === "sample" ? "none" : operations[kind].resource;
    if (resource === "none") return perform();
    const turn = await this.#turnAt(resource);
    let cost = 0;
    try {
      const performed = await perform();
      cost = tokensOf(performed.done);
      return performed;
    } finally {
      // An owner with more models than fit in memory pays for bringing them back.
      turn.end(cost + liveModels.takeReplayCost(this.model.modelId));
    }
  }

  #turnAt(resource: "engine" | "disk"): Promise<Turn> {
    const { scheduler, liveModels } = this.#parts;
    const { owner, modelId: group } = this.model;
    const isPreferred = (): boolean => liveModels.has(group);
    return scheduler.turn({ resource, owner, group, isPreferred }, this.#noTurn);
  }

  /** Why the model waits for a turn; undefined when it does not. */
  #turnNote(): QueueNote | undefined {
    const { scheduler } = this.#parts;
    const { owner, modelId: group } = this.model;
    const waiting =
      scheduler.contention({ resource: "engine", owner, group }) ??
      scheduler.contention({ resource: "disk", owner, group });
    if (!waiting) return undefined;
    const share = waiting.owners === 1 ? "" : `, and ${waiting.owners} owners take turns`;
    return {
      queueState: "paused_capacity",
      reason: `waiting for its turn: ${waiting.groups} of your models wait${share}`,
    };
  }

  /** Performs a request; if the engine or the adapter breaks under it, once more on the model from its journal. */
  #perform(request: RequestRow, startedAt: number): Promise<Performed> {
    const { guard, liveModels, logger } = this.#parts;
    const { modelId } = this.model;
    return guard.run(maxAttempts, async () => {
      try {
        return await this.#performOnce(request, startedAt);
      } catch (error) {
        if (!isAdapterBroken(error)) throw error;
        logger.warn("a step broke its adapter; rebuilding the model", { model: modelId });
        await liveModels.discardUncommitted(modelId);
        return this.#performOnce(request, startedAt);
      }
    });
  }

  async #performOnce(request: RequestRow, startedAt: number): Promise<Performed> {
    const { clock, journal, liveModels, operations, workers } = this.#parts;
    const { kind, requestId } = request;
    const { signal } = this.#stopping;
    signal.throwIfAborted();
    if (kind === "unload_model") {
      return { done: await this.#unload(), live: null, startedAt, tookMs: 0 };
    }
    if (kind === "sample") throw new Error("a sample is not a request of a training run");
    const operation = operations[kind];
    const live = await liveModels.hold(this.model);
    const begunAt = clock.elapsed();
    operation.check?.(live);
    const { owner } = this.model;
    const done = await operation.run({
      live,
      request,
      bytes: () => this.#unlessDamaged(() => journal.payload(requestId)),
      pass: () => this.#unlessDamaged(() => workers.pass(owner, journal.stored(requestId))),
      signal,
    });
    return { done, live, startedAt, tookMs: clock.elapsed() - begunAt };
  }

  /** A model with a damaged request cannot go on. */
  async #unlessDamaged<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof DamagedError)) throw error;
      return this.#parts.liveModels.markCorrupted(this.model.modelId, error.message);
    }
  }

  async #unload(): Promise<Done> {
    const { modelId } = this.model;
    const { store, snapshots, liveModels } = this.#parts;
    const reason = "its client unloaded it";
    // First of all, because it waits for a snapshot that is being written.
    await liveModels.drop(modelId);
    let orphans = noOrphans;
    return {
      ...jsonResult("UnloadModelResponse", { modelId, type: "unload_model" }),
      usage: [],
      change: "none",
      write: () => {
        store.models.setState(modelId, "unloaded", reason);
        orphans = snapshots.forget(modelId);
      },
      afterCommit: async () => {
        await snapshots.discard(orphans);
        this.#end(reason);
      },
    };
  }

  async #save(save: { readonly type: CheckpointKind; readonly name: string }): Promise<string> {
    const { liveModels, guard } = this.#parts;
    const turn = await this.#turnAt("disk");
    try {
      const saved = await guard.run(maxAttempts, async () =>
        saveWithoutRequest(this.#parts, await liveModels.hold(this.model), save),
      );
      await this.#outcomes.commitSave(saved);
      return pathOf(saved.record);
    } finally {
      turn.end();
      liveModels.release(this.model.modelId);
    }
  }

  async #fail(request: RequestRow, error: unknown, progress: Progress): Promise<void> {
    const failure = await this.#outcomes.fail(request, error, progress);
    if (request.seq === 0) this.#end(notCreated(failure));
  }

  /** Ends the run from within: what waits fails. */
  #end(reason: string): void {
    void this.#refuseAll(reason).then(this.#resolveEnded);
  }

  async #refuseAll(reason: string): Promise<void> {
    const error = new StoppedError(`model ${this.model.modelId} has ended: ${reason}`);
    this.#stopping.abort(error);
    const waiting = this.#waiting.drain();
    this.#pendingBytes = 0;
    await Promise.all(waiting.map((request) => this.#fail(request, error, notStarted)));
  }

  /** True for a request that finished so long ago that nothing of it is left. */
  #isForgotten({ requestId, seq }: RunRequest): boolean {
    if (seq === null || seq >= this.#waiting.nextSeq) return false;
    return this.#parts.store.requests.get(requestId) === undefined;
  }

  /** The request with the next number is always accepted; otherwise a full queue could never empty. */
  #refuseOverload(seq: number | null, sizeBytes: number): void {
    const { nextSeq } = this.#waiting;
    if (seq === nextSeq) return;
    const { maxPendingPerModel, maxPendingBytesPerModel } = this.#parts.limits;
    const ahead = seq === null ? this.pendingCount : seq - nextSeq;
    if (ahead >= maxPendingPerModel || this.#pendingBytes + sizeBytes > maxPendingBytesPerModel) {
      throw tooMany(`model ${this.model.modelId} has ${this.pendingCount} requests waiting`, 1000);
    }
  }
}

const notStarted: Progress = { nextSeq: null, startedAt: null };

/** Refuses requests for a model that has ended. */
export function refuseEnded(model: ModelStatus): void {
  if (model.state === "creating" || model.state === "live") return;
  throw gone(
    `model ${model.modelId} has ended: ${model.stateReason ?? "its session was closed"}; create a new one, for example from a checkpoint`,
  );
}
