import path from "node:path";
import type { NamedTensors, ParameterExport } from "@tinker-ts/engine";
import { StateFolders, type UnknownFolder } from "../checkpoints/state-folders.js";
import type { EngineKit } from "../engine-port/engine-kit.js";
import { isStorageFailure } from "../errors/storage-failure.js";
import type { ServerLimits } from "../prices.js";
import type { Logger } from "../log/logger.js";
import type { Metrics } from "../metrics/metrics.js";
import type { SnapshotRecord } from "../store/snapshots-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import type { LiveModel } from "./live-models.js";

/** Repeating less than this is never worth a snapshot. */
const minReplayMs = 2000;

/** A snapshot's writing time before the first one was measured. */
const assumedSnapshotMs = 100;

/** What snapshots work with. */
export interface SnapshotsParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
  readonly metrics: Metrics;
}

/**
 * States of live models on disk, so that a restart repeats little.
 *
 * - A snapshot is taken when repeating the journal would cost a multiple of writing the state, or when
 *   the journal has grown large; never while gradients are waiting for a step.
 * - It is read back and compared before it counts.
 * - The one before it and the journal since then stay: when the newest no longer matches its digests, they
 *   lead to the same state. What is older goes, in one transaction with the new record.
 */
export class Snapshots {
  readonly #parts: SnapshotsParts;
  readonly #folders: StateFolders;
  #snapshotMs = assumedSnapshotMs;

  constructor(parts: SnapshotsParts, loadKit: () => Promise<EngineKit>) {
    this.#parts = parts;
    this.#folders = new StateFolders(path.join(parts.store.dataDir, "snapshots"), loadKit);
  }

  /** Starts a snapshot when one is due; what comes after does not wait for it. */
  consider(live: LiveModel): void {
    const { maxJournalBytes, maxReplayRatio } = this.#parts.limits;
    const isDue =
      live.journalBytes > maxJournalBytes ||
      live.replayMs > Math.max(minReplayMs, maxReplayRatio * this.#snapshotMs);
    if (isDue && !live.snapshotting && !live.hasGradients) this.#start(live);
  }

  /**
   * Writes the state out if that would save a restart more work than it costs now. `isStill` is true while no
   * request of the model is under way, so that the state is the one that was committed.
   */
  async settle(live: LiveModel, isStill: () => boolean): Promise<void> {
    await live.snapshotting;
    if (!isStill() || live.hasGradients || live.replayMs <= this.#snapshotMs) return;
    this.#start(live);
    await live.snapshotting;
  }

  /** Writes a state that nothing in the journal leads to; it counts once `makeCurrent` is committed. */
  async writeNow(live: LiveModel, applied: number, request: string): Promise<SnapshotRecord> {
    await live.snapshotting;
    const state = await live.adapter.exportState({ optimizer: true });
    return this.#write(live, applied, state, { request });
  }

  /**
   * Makes a snapshot the one that counts; call it inside a transaction. Returns what is not needed any
   * more. The journal does not lead to a state that is `replacing` the one before, so nothing of that stays.
   */
  makeCurrent(record: SnapshotRecord, how: "following" | "replacing"): OrphanedFiles {
    const { snapshots, journal } = this.#parts.store;
    const { modelId, applied } = record;
    const [previous] = snapshots.list(modelId);
    snapshots.insert(record);
    const oldest = how === "replacing" ? applied : (previous?.applied ?? 0);
    return {
      folders: snapshots.removeBefore(modelId, oldest),
      blobs: journal.truncate(modelId, oldest),
    };
  }

  /** Forgets everything kept to bring a model back; call it inside a transaction. */
  forget(modelId: string): OrphanedFiles {
    const { snapshots, journal } = this.#parts.store;
    const all = Number.MAX_SAFE_INTEGER;
    return {
      folders: snapshots.removeBefore(modelId, all),
      blobs: journal.truncate(modelId, all),
    };
  }

  /** Deletes files that no record names any more. */
  async discard({ folders, blobs }: OrphanedFiles): Promise<void> {
    await this.#folders.remove(folders);
    await this.#parts.store.blobs.remove(blobs);
  }

  /** The newest state of a model that is whole, if there is one, and what was found damaged on the way. */
  async load(modelId: string, modelFolder: string): Promise<LoadedSnapshot> {
    const damage: string[] = [];
    for (const record of this.#parts.store.snapshots.list(modelId)) {
      try {
        const state = await this.#folders.read(record, modelFolder);
        return { newest: { applied: record.applied, state }, damage };
      } catch (error) {
        if (isStorageFailure(error)) throw error;
        const { message } = error as Error;
        damage.push(message);
        this.#parts.logger.error("a snapshot cannot be used", { model: modelId, error: message });
      }
    }
    return { newest: undefined, damage };
  }

  /** Folders that no record names. */
  findUnknown(): Promise<UnknownFolder[]> {
    return this.#folders.findUnknown(this.#parts.store.snapshots.folders());
  }

  #start(live: LiveModel): void {
    const running = this.#take(live)
      .catch((error: unknown) => {
        this.#parts.logger.error("a snapshot failed", {
          model: live.model.modelId,
          error: error instanceof Error ? error.message : String(error),
        });
      })
      .finally(() => {
        live.snapshotting = undefined;
      });
    live.snapshotting = running;
  }

  async #take(live: LiveModel): Promise<void> {
    const { store, logger, metrics } = this.#parts;
    const startedAt = performance.now();
    // Both in one turn: the engine exports what is there before any request that comes later.
    const mark = live.mark();
    const state = await live.adapter.exportState({ optimizer: true });
    const record = await this.#write(live, mark.applied, state);
    const orphans = await store.write(() => this.makeCurrent(record, "following"));
    live.noteSaved(mark);
    this.#snapshotMs = performance.now() - startedAt;
    metrics.snapshots.add();
    await this.discard(orphans);
    logger.debug("snapshot written", {
      model: record.modelId,
      applied: record.applied,
      bytes: record.sizeBytes,
      ms: this.#snapshotMs,
    });
  }

  async #write(
    live: LiveModel,
    applied: number,
    state: ParameterExport,
    origin: { request?: string } = {},
  ): Promise<SnapshotRecord> {
    const { modelId, lora, baseModel } = live.model;
    const adapter = { lora, baseModel, state };
    const written = await this.#folders.write(adapter, { of: modelId, applied, ...origin });
    const { folder } = written;
    const readBack = await this.#folders.read(written, live.modelFolder);
    if (!isSameState(state, readBack)) {
      await this.#folders.remove([folder]);
      throw new Error("the state read back from disk is not the one written");
    }
    return { modelId, applied, ...written, createdAt: this.#parts.clock.now() };
  }
}

/** What the snapshots of a model gave. */
export interface LoadedSnapshot {
  readonly newest: { readonly applied: number; readonly state: ParameterExport } | undefined;
  readonly damage: readonly string[];
}

/** Files that no record names any more. */
export interface OrphanedFiles {
  readonly folders: readonly string[];
  readonly blobs: readonly string[];
}

/** No such files. */
export const noOrphans: OrphanedFiles = { folders: [], blobs: [] };

function isSameState(a: ParameterExport, b: ParameterExport): boolean {
  return (
    isSameTensors(a.tensors, b.tensors) &&
    a.optimizer?.step === b.optimizer?.step &&
    isSameTensors(a.optimizer?.firstMoments, b.optimizer?.firstMoments) &&
    isSameTensors(a.optimizer?.secondMoments, b.optimizer?.secondMoments)
  );
}

function isSameTensors(a: NamedTensors | undefined, b: NamedTensors | undefined): boolean {
  if (!a || !b) return a === b;
  if (a.size !== b.size) return false;
  return [...a].every(([name, { data }]) => {
    const other = b.get(name)?.data;
    return other !== undefined && bytesOf(data).equals(bytesOf(other));
  });
}

function bytesOf(data: Float32Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
