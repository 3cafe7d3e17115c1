import type { Context } from "../context/context.js";
import { StoppedError } from "../errors/failure.js";
import type { Model } from "../store/models-table.js";
import type { RequestHead } from "../store/requests-table.js";
import { adapterOptions } from "./adapter-options.js";
import type { BaseModels } from "./base-models.js";
import { repeat, type JournaledKind } from "./journal-entry.js";
import { LiveModel } from "./live-model.js";
import type { Snapshots } from "./snapshots.js";

/** A model that nobody has used for this long is a good moment to write its state out. */
const idleMs = 5000;

/**
 * Models in the engine's memory. A model that is not there is brought back from its newest snapshot
 * and the journal after it; that serves a restart, a model that was parked to make room, and an engine
 * that broke, all in the same way.
 */
export class LiveModels {
  readonly #context: Context;
  readonly #bases: BaseModels;
  readonly #snapshots: Snapshots;
  readonly #live = new Map<string, Promise<LiveModel>>();
  readonly #parking = new Map<string, Promise<void>>();

  constructor(context: Context, bases: BaseModels, snapshots: Snapshots) {
    this.#context = context;
    this.#bases = bases;
    this.#snapshots = snapshots;
  }

  get count(): number {
    return this.#live.size;
  }

  /** The model in memory; brings it back first when it is not there. */
  async get(modelId: string): Promise<LiveModel> {
    let restoring = this.#live.get(modelId);
    if (!restoring) {
      const begun = this.#restore(modelId);
      restoring = begun;
      this.#live.set(modelId, begun);
      begun.catch(() => {
        if (this.#live.get(modelId) === begun) this.#live.delete(modelId);
      });
    }
    const live = await restoring;
    live.lastUsedAt = this.#context.clock.now();
    return live;
  }

  /** Writes the states of models out that have been idle for a while, where that pays. */
  async settleIdle(isIdle: (modelId: string) => boolean): Promise<void> {
    const idleSince = this.#context.clock.now() - idleMs;
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
    this.#live.delete(modelId);
    const live = await restoring?.catch(() => undefined);
    await live?.snapshotting;
    await live?.adapter.release().catch(() => {});
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
  }

  /** The models above the limit, the longest unused first; `isIdle` tells which may go. */
  async surplus(isIdle: (modelId: string) => boolean): Promise<string[]> {
    const excess = this.#live.size - this.#context.limits.maxLiveModels;
    if (excess <= 0) return [];
    const idle = [...this.#live].filter(([modelId]) => isIdle(modelId));
    const loaded = await Promise.all(idle.map(([, restoring]) => restoring.catch(() => undefined)));
    return loaded
      .filter((live) => live !== undefined)
      .toSorted((a, b) => a.lastUsedAt - b.lastUsedAt)
      .slice(0, excess)
      .map((live) => live.model.modelId);
  }

  /** Forgets everything in memory, after the engine broke. */
  reset(): void {
    this.#live.clear();
  }

  async #restore(modelId: string): Promise<LiveModel> {
    const { store, clock, logger, metrics } = this.#context;
    await this.#parking.get(modelId);
    const model = store.models.get(modelId);
    if (!model) throw new Error(`model ${modelId} has no record`);
    const base = await this.#bases.load(model.baseModel);
    const { folder: modelFolder } = await this.#bases.find(model.baseModel);
    const snapshot = await this.#snapshots.load(modelId, modelFolder);
    const savedApplied = snapshot?.applied ?? 0;
    const journal = this.#completeJournal(model, savedApplied);
    const adapter = await base.createAdapter(adapterOptions(model.lora));
    const live = new LiveModel({ model, adapter, modelFolder, savedApplied, now: clock.now() });
    try {
      if (snapshot) await adapter.importState(snapshot.state, { optimizer: true });
      for (const entry of journal) await this.#repeat(live, entry);
    } catch (error) {
      await adapter.release().catch(() => {});
      throw error;
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
    const payload = await this.#context.ledger.payload(entry.requestId);
    const { clock } = this.#context;
    const startedAt = clock.now();
    const kind = entry.kind as JournaledKind;
    await repeat(live.adapter, kind, payload);
    const tookMs = clock.now() - startedAt;
    live.noteApplied(kind === "forward_backward", payload.length, tookMs);
  }

  /** The journal from a state to the present; a model whose journal has a hole is lost and says so. */
  #completeJournal(model: Model, savedApplied: number): RequestHead[] {
    const { store, logger } = this.#context;
    const journal = store.journal.list(model.modelId, savedApplied);
    const isComplete =
      savedApplied + journal.length === model.applied &&
      journal.every((entry, index) => entry.applied === savedApplied + index + 1);
    if (isComplete) return journal;
    const reason =
      "its files in the data directory are damaged or missing; continue from a checkpoint";
    logger.error("a model cannot be brought back", { model: model.modelId, reason });
    store
      .write(() => store.models.setState(model.modelId, "failed", reason))
      .catch((error: unknown) => logger.error("cannot write", { error: String(error) }));
    throw new StoppedError(`model ${model.modelId} cannot be brought back: ${reason}`, "server");
  }
}
