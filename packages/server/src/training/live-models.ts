import type { Workers } from "../workers/workers.js";
import { adapterOptions } from "../engine-host/adapter-options.js";
import type { BaseModels } from "../engine-host/base-models.js";
import { DamagedError } from "../errors/damaged-error.js";
import { isEngineRefusal, StoppedError } from "../errors/failure.js";
import type { Model } from "../store/models-table.js";
import type { RequestRow } from "../store/requests-table.js";
import type { Journal } from "../journal/journal.js";
import type { ServerLimits } from "../prices.js";
import type { Logger } from "../log/logger.js";
import type { Metrics } from "../metrics/metrics.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import type { Operations } from "./operations/index.js";
import { tokensOf } from "./operations/operation.js";
import type { Snapshots } from "./snapshots.js";
import type { TrainedAdapter } from "../engine-port/engine-port.js";

/** What models are brought back with. */
export interface LiveModelsParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly workers: Workers;
  readonly bases: BaseModels;
  readonly snapshots: Snapshots;
  readonly operations: Operations;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly limits: ServerLimits;
}

/** A model and its owner. */
type ModelKey = Pick<Model, "modelId" | "owner">;

/** A model that is unused for this long has its state written out. */
const idleMs = 5000;

/**
 * Models in the engine's memory.
 *
 * - A model that is not there is brought back from its newest snapshot and the journal after it; that
 *   serves a restart, a model that was parked to make room, and an engine that broke, all in the same way.
 * - There are never more than the limit: room is made before a model is brought back, one at a time. The owner
 *   of most models gives up the one that was not used for longest.
 */
export class LiveModels {
  readonly #parts: LiveModelsParts;
  readonly #live = new Map<string, Promise<LiveModel>>();
  readonly #parking = new Map<string, Promise<void>>();
  /** What takes memory: live models that do not wait for room any more, and those that are on their way out. */
  readonly #resident = new Map<Promise<LiveModel>, ModelKey>();
  /** Models with a request under way, which must stay. */
  readonly #held = new Set<string>();
  /** Tokens of what was repeated to bring models back, until they are charged. */
  readonly #replayCosts = new Map<string, number>();
  #restoring: Promise<unknown> = Promise.resolve();
  #onRoom: (() => void) | undefined;

  constructor(parts: LiveModelsParts) {
    this.#parts = parts;
  }

  get count(): number {
    return this.#resident.size;
  }

  /** The model in memory, which stays there until `release`; brings it back first when it is not there. */
  async hold({ modelId, owner }: ModelKey): Promise<LiveModel> {
    this.#held.add(modelId);
    let restoring = this.#live.get(modelId);
    if (!restoring) {
      const begun = this.#inTurn(async () => {
        await this.#makeRoom();
        this.#resident.set(begun, { modelId, owner });
        return this.#restore(modelId);
      });
      restoring = begun;
      this.#live.set(modelId, begun);
      begun.catch(() => {
        if (this.#live.get(modelId) === begun) this.#live.delete(modelId);
        this.#noteGone(begun);
      });
    }
    const live = await restoring;
    live.lastUsedAt = this.#parts.clock.elapsed();
    return live;
  }

  /** Whether a model is in memory, so that its next request costs no more than itself. */
  has(modelId: string): boolean {
    return this.#live.has(modelId);
  }

  /** The tokens that bringing a model back has repeated; they are charged once. */
  takeReplayCost(modelId: string): number {
    const tokens = this.#replayCosts.get(modelId) ?? 0;
    this.#replayCosts.delete(modelId);
    return tokens;
  }

  /** Allows a model to be parked again; what its last request did is committed. */
  release(modelId: string): void {
    this.#held.delete(modelId);
    this.#onRoom?.();
  }

  /** Writes the states of models out that have been idle for a while, where that pays. */
  async settleIdle(isIdle: (modelId: string) => boolean): Promise<void> {
    const idleSince = this.#parts.clock.elapsed() - idleMs;
    for (const [modelId, restoring] of this.#live) {
      if (!isIdle(modelId)) continue;
      const live = await restoring.catch(() => undefined);
      if (live && live.lastUsedAt < idleSince && isIdle(modelId)) {
        await this.#parts.snapshots.settle(live, () => isIdle(modelId));
      }
    }
  }

  /** Takes a model out of memory that is ahead of what was committed; its journal brings it back. */
  async discardUncommitted(modelId: string): Promise<void> {
    const live = await this.#live.get(modelId)?.catch(() => undefined);
    if (live?.isAhead) await this.drop(modelId);
  }

  /** Takes a model out of memory without writing anything. */
  async drop(modelId: string): Promise<void> {
    const restoring = this.#live.get(modelId);
    if (!restoring) return;
    this.#live.delete(modelId);
    const live = await restoring.catch(() => undefined);
    await live?.snapshotting;
    await live?.adapter.release().catch(() => {});
    this.#noteGone(restoring);
  }

  /**
   * Writes a model's state out where that pays and takes it out of memory; no request of it may be
   * under way. One that comes meanwhile waits and then brings the model back.
   */
  async park(modelId: string): Promise<void> {
    const restoring = this.#live.get(modelId);
    if (!restoring) return;
    this.#live.delete(modelId);
    const parking = restoring.then(
      async (live) => {
        await this.#parts.snapshots.settle(live, () => true);
        await live.adapter.release().catch(() => {});
      },
      () => {},
    );
    this.#parking.set(modelId, parking);
    await parking;
    this.#parking.delete(modelId);
    this.#noteGone(restoring);
  }

  /** Records that a model is lost, and why; others go on. */
  async markCorrupted(modelId: string, damage: string): Promise<never> {
    const { store, logger } = this.#parts;
    const reason = `${damage}; continue from a checkpoint`;
    logger.error("a model is corrupted", { model: modelId, reason });
    await store.write(() => store.models.setState(modelId, "failed", reason));
    throw new StoppedError(`model ${modelId} is corrupted: ${reason}`, "server");
  }

  /** Forgets everything in memory, after the engine broke. */
  reset(): void {
    this.#live.clear();
    this.#resident.clear();
    this.#onRoom?.();
  }

  /** Runs work after all that was begun before it. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#restoring.then(work);
    this.#restoring = result.catch(() => {});
    return result;
  }

  #noteGone(restoring: Promise<LiveModel>): void {
    this.#resident.delete(restoring);
    this.#onRoom?.();
  }

  /** Parks models until there is room for one more. */
  async #makeRoom(): Promise<void> {
    while (this.#resident.size >= this.#parts.limits.maxLiveModels) {
      const modelId = await this.#mostDispensable();
      if (modelId === undefined) {
        // All are at work or on their way out; none of them waits for this one.
        await new Promise<void>((resolve) => {
          this.#onRoom = resolve;
        });
      } else if (!this.#held.has(modelId)) await this.park(modelId);
    }
  }

  /** Of the owner who has most models, the one that was not used for longest; others are not touched. */
  async #mostDispensable(): Promise<string | undefined> {
    const residents = [...this.#resident];
    const counts = new Map<string, number>();
    for (const [, { owner }] of residents) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const free = residents.filter(
      ([restoring, { modelId, owner }]) =>
        counts.get(owner) === most &&
        this.#live.get(modelId) === restoring &&
        !this.#held.has(modelId),
    );
    const lives = await Promise.all(free.map(([restoring]) => restoring.catch(() => undefined)));
    const [first] = lives
      .filter((live) => live !== undefined)
      .toSorted((a, b) => a.lastUsedAt - b.lastUsedAt);
    return first?.model.modelId;
  }

  /** Puts on record what a model is computed on, where that is another device than before. */
  async #noteDevice({ modelId, devices = [] }: Model): Promise<void> {
    const { store } = this.#parts;
    const device = this.#parts.bases.device?.name;
    if (device === undefined || devices.at(-1) === device) return;
    await store.write(() => store.models.setDevices(modelId, [...devices, device]));
  }

  async #restore(modelId: string): Promise<LiveModel> {
    const { store, bases, snapshots, clock, logger, metrics } = this.#parts;
    await this.#parking.get(modelId);
    const model = store.models.get(modelId);
    if (!model) throw new Error(`model ${modelId} has no record`);
    const base = await bases.load(model.baseModel, modelId);
    const { folder: modelFolder } = await bases.find(model.baseModel);
    const { newest: snapshot, damage } = await snapshots.load(modelId, modelFolder);
    const savedApplied = snapshot?.applied ?? 0;
    const journal = store.journal.list(modelId, savedApplied);
    if (!isComplete(journal, savedApplied, model.applied)) {
      return this.markCorrupted(modelId, damage[0] ?? "a part of its journal is missing");
    }
    const adapter = await base.createAdapter(adapterOptions(model.lora));
    await this.#noteDevice(model);
    const live = new LiveModel({ model, adapter, modelFolder, savedApplied, now: clock.elapsed() });
    try {
      if (snapshot) await adapter.importState(snapshot.state, { optimizer: true });
      for (const request of journal) await this.#replay(live, request);
    } catch (error) {
      await adapter.release().catch(() => {});
      // What was done once and cannot be done again is not a mistake of the request that found it out.
      if (!(error instanceof DamagedError || isEngineRefusal(error))) throw error;
      return this.markCorrupted(modelId, error.message);
    }
    metrics.replays.add(journal.length);
    if (snapshot || journal.length > 0) {
      logger.info("model brought back", {
        model: modelId,
        from: savedApplied,
        repeated: journal.length,
        ms: live.replayMs,
      });
    }
    return live;
  }

  /** Repeats a request for its effect, the way it was done first. */
  async #replay(live: LiveModel, request: RequestRow): Promise<void> {
    const { clock, journal, workers, operations } = this.#parts;
    const startedAt = clock.elapsed();
    const { requestId } = request;
    const { modelId, owner } = live.model;
    const done = await operations[request.kind as RepeatedKind].run({
      live,
      request,
      bytes: () => journal.payload(requestId),
      pass: () => workers.pass(owner, journal.stored(requestId)),
    });
    const cost = (this.#replayCosts.get(modelId) ?? 0) + tokensOf(done);
    this.#replayCosts.set(modelId, cost);
    const tookMs = clock.elapsed() - startedAt;
    live.noteApplied(request.kind === "forward_backward", request.payloadBytes, tookMs);
  }
}

/** The kinds that change a model step by step. */
type RepeatedKind = "forward_backward" | "optim_step";

/** Whether a journal leads from a state to the present without a hole. */
function isComplete(journal: readonly RequestRow[], from: number, to: number): boolean {
  return (
    from + journal.length === to &&
    journal.every((entry, index) => entry.applied === from + index + 1)
  );
}

/** A model in the engine's memory, and how far it is from its last state on disk. */
export class LiveModel {
  readonly model: Model;
  readonly adapter: TrainedAdapter;
  /** The folder of its base model. */
  readonly modelFolder: string;
  /** How many operations have changed it so far. */
  applied: number;
  /** The `applied` of the newest state on disk; 0 is the untrained adapter, which its seed gives back. */
  savedApplied: number;
  /** The engine may have changed it by something that is not committed. */
  isAhead = false;
  /** Gradients are waiting for a step; such a moment is never written to disk. */
  hasGradients = false;
  /** Payloads that a restart would have to read. */
  journalBytes = 0;
  /** Work that a restart would have to repeat. */
  replayMs = 0;
  /** A state is being written right now. */
  snapshotting: Promise<void> | undefined;
  lastUsedAt: number;

  constructor(init: {
    readonly model: Model;
    readonly adapter: TrainedAdapter;
    readonly modelFolder: string;
    readonly savedApplied: number;
    readonly now: number;
  }) {
    this.model = init.model;
    this.adapter = init.adapter;
    this.modelFolder = init.modelFolder;
    this.applied = init.savedApplied;
    this.savedApplied = init.savedApplied;
    this.lastUsedAt = init.now;
  }

  /** Lets the engine change the model; what the engine refuses has changed nothing. */
  async change<T>(work: (adapter: TrainedAdapter) => Promise<T>): Promise<T> {
    this.isAhead = true;
    try {
      return await work(this.adapter);
    } catch (error) {
      if (isEngineRefusal(error)) this.isAhead = false;
      throw error;
    }
  }

  /** Notes that one more operation has changed the model; passes leave gradients, steps use them up. */
  noteApplied(isPass: boolean, payloadBytes: number, tookMs: number): void {
    this.applied++;
    this.isAhead = false;
    this.hasGradients = isPass;
    this.journalBytes += payloadBytes;
    this.replayMs += tookMs;
  }

  /** Notes that the model is a new one with its state on disk. */
  noteReplaced(): void {
    this.applied++;
    this.isAhead = false;
    this.hasGradients = false;
    this.noteSaved(this.mark());
  }

  /** Where it stands now, to be noted as saved once that is on disk. */
  mark(): LiveMark {
    return { applied: this.applied, journalBytes: this.journalBytes, replayMs: this.replayMs };
  }

  /** Notes that the state of a mark is on disk. */
  noteSaved(mark: LiveMark): void {
    this.savedApplied = mark.applied;
    this.journalBytes -= mark.journalBytes;
    this.replayMs -= mark.replayMs;
  }
}

/** A moment in the life of a model. */
export interface LiveMark {
  readonly applied: number;
  readonly journalBytes: number;
  readonly replayMs: number;
}
