import type { Context } from "../context/context.js";
import { DamagedError } from "../errors/damaged-error.js";
import { isEngineRefusal, StoppedError } from "../errors/failure.js";
import type { Model } from "../store/models-table.js";
import type { RequestHead } from "../store/requests-table.js";
import { adapterOptions } from "./adapter-options.js";
import type { BaseModels } from "./base-models.js";
import { repeat, type JournaledKind } from "./journal-entry.js";
import { LiveModel } from "./live-model.js";
import type { Snapshots } from "./snapshots.js";

/** A model and whose it is. */
type ModelKey = Pick<Model, "modelId" | "owner">;

/** A model that nobody has used for this long is a good moment to write its state out. */
const idleMs = 5000;

/**
 * Models in the engine's memory.
 *
 * - A model that is not there is brought back from its newest snapshot and the journal after it; that
 *   serves a restart, a model that was parked to make room, and an engine that broke, all in the same way.
 * - There are never more than the limit: room is made before a model is brought back, one at a time. Whoever
 *   has most of them gives up the one that was not used for longest.
 */
export class LiveModels {
  readonly #context: Context;
  readonly #bases: BaseModels;
  readonly #snapshots: Snapshots;
  readonly #live = new Map<string, Promise<LiveModel>>();
  readonly #parking = new Map<string, Promise<void>>();
  /** What takes memory: live models that do not wait for room any more, and those that are on their way out. */
  readonly #resident = new Map<Promise<LiveModel>, ModelKey>();
  /** Models with a request under way, which must stay. */
  readonly #held = new Set<string>();
  /** Tokens of what was repeated to bring models back, until somebody is charged for them. */
  readonly #repeated = new Map<string, number>();
  #restoring: Promise<unknown> = Promise.resolve();
  #onRoom: (() => void) | undefined;

  constructor(context: Context, bases: BaseModels, snapshots: Snapshots) {
    this.#context = context;
    this.#bases = bases;
    this.#snapshots = snapshots;
  }

  get count(): number {
    return this.#resident.size;
  }

  /** The model in memory, which stays there until `letGo`; brings it back first when it is not there. */
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
    live.lastUsedAt = this.#context.clock.elapsed();
    return live;
  }

  /** Whether a model is in memory, so that its next request costs no more than itself. */
  has(modelId: string): boolean {
    return this.#live.has(modelId);
  }

  /** What bringing a model back came to, in tokens, since this was last asked. */
  takeRepeated(modelId: string): number {
    const tokens = this.#repeated.get(modelId) ?? 0;
    this.#repeated.delete(modelId);
    return tokens;
  }

  /** Lets a model be parked again; what its last request did is committed. */
  letGo(modelId: string): void {
    this.#held.delete(modelId);
    this.#onRoom?.();
  }

  /** Writes the states of models out that have been idle for a while, where that pays. */
  async settleIdle(isIdle: (modelId: string) => boolean): Promise<void> {
    const idleSince = this.#context.clock.elapsed() - idleMs;
    for (const [modelId, restoring] of this.#live) {
      if (!isIdle(modelId)) continue;
      const live = await restoring.catch(() => undefined);
      if (live && live.lastUsedAt < idleSince && isIdle(modelId)) {
        await this.#snapshots.settle(live, () => isIdle(modelId));
      }
    }
  }

  /** Takes a model out of memory that is ahead of what was committed; its journal brings it back. */
  async dropAhead(modelId: string): Promise<void> {
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
        await this.#snapshots.settle(live, () => true);
        await live.adapter.release().catch(() => {});
      },
      () => {},
    );
    this.#parking.set(modelId, parking);
    await parking;
    this.#parking.delete(modelId);
    this.#noteGone(restoring);
  }

  /** Puts on record that a model is lost, and why; others go on. */
  async giveUp(modelId: string, damage: string): Promise<never> {
    const { store, logger } = this.#context;
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
    while (this.#resident.size >= this.#context.limits.maxLiveModels) {
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
    const { store } = this.#context;
    const device = this.#bases.device?.name;
    if (device === undefined || devices.at(-1) === device) return;
    await store.write(() => store.models.setDevices(modelId, [...devices, device]));
  }

  async #restore(modelId: string): Promise<LiveModel> {
    const { store, clock, logger, metrics } = this.#context;
    await this.#parking.get(modelId);
    const model = store.models.get(modelId);
    if (!model) throw new Error(`model ${modelId} has no record`);
    const base = await this.#bases.load(model.baseModel, modelId);
    const { folder: modelFolder } = await this.#bases.find(model.baseModel);
    const { newest: snapshot, damage } = await this.#snapshots.load(modelId, modelFolder);
    const savedApplied = snapshot?.applied ?? 0;
    const journal = store.journal.list(modelId, savedApplied);
    if (!isComplete(journal, savedApplied, model.applied)) {
      return this.giveUp(modelId, damage[0] ?? "a part of its journal is missing");
    }
    const adapter = await base.createAdapter(adapterOptions(model.lora));
    await this.#noteDevice(model);
    const live = new LiveModel({ model, adapter, modelFolder, savedApplied, now: clock.elapsed() });
    try {
      if (snapshot) await adapter.importState(snapshot.state, { optimizer: true });
      for (const entry of journal) await this.#repeat(live, entry);
    } catch (error) {
      await adapter.release().catch(() => {});
      // What was done once and cannot be done again is not a mistake of the request that found it out.
      if (!(error instanceof DamagedError || isEngineRefusal(error))) throw error;
      return this.giveUp(modelId, error.message);
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

  async #repeat(live: LiveModel, entry: RequestHead): Promise<void> {
    const { clock } = this.#context;
    const startedAt = clock.elapsed();
    const kind = entry.kind as JournaledKind;
    const tokens = await repeat(this.#context, live, kind, entry.requestId);
    const { modelId } = live.model;
    this.#repeated.set(modelId, (this.#repeated.get(modelId) ?? 0) + tokens);
    const tookMs = clock.elapsed() - startedAt;
    live.noteApplied(kind === "forward_backward", entry.payloadBytes, tookMs);
  }
}

/** Whether a journal leads from a state to the present without a hole. */
function isComplete(journal: readonly RequestHead[], from: number, to: number): boolean {
  return (
    from + journal.length === to &&
    journal.every((entry, index) => entry.applied === from + index + 1)
  );
}
