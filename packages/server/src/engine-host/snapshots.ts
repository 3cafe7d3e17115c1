import path from "node:path";
import type { NamedTensors, ParameterExport } from "@tinker-ts/engine";
import { StateFolders } from "../checkpoints/state-folders.js";
import type { Context } from "../context/context.js";
import type { EngineKit } from "../engine-port/engine-kit.js";
import type { SnapshotRecord } from "../store/snapshots-table.js";
import type { LiveModel } from "./live-model.js";

/** Repeating less than this is never worth a snapshot. */
const minReplayMs = 2000;

/** A snapshot's writing time before the first one was measured. */
const assumedSnapshotMs = 100;

/**
 * States of live models on disk, so that a restart repeats little.
 *
 * - A snapshot is taken when repeating the journal would cost a multiple of writing the state, or when
 *   the journal has grown large; never while gradients are waiting for a step.
 * - It is read back and compared before it counts. Only then are the journal it covers and the
 *   snapshot before it deleted, in one transaction with its record.
 * - One that no longer matches its digest is not used; the one before it is.
 */
export class Snapshots {
  readonly #context: Context;
  readonly #folders: StateFolders;
  #snapshotMs = assumedSnapshotMs;

  constructor(context: Context, loadKit: () => Promise<EngineKit>) {
    this.#context = context;
    this.#folders = new StateFolders(path.join(context.store.dataDir, "snapshots"), loadKit);
  }

  /** Starts a snapshot when one is due; what comes after does not wait for it. */
  consider(live: LiveModel): void {
    const { maxJournalBytes, maxReplayRatio } = this.#context.limits;
    const isDue =
      live.journalBytes > maxJournalBytes ||
      live.replayMs > Math.max(minReplayMs, maxReplayRatio * this.#snapshotMs);
    if (isDue && !live.snapshotting && !live.hasGradients) this.#start(live);
  }

  /**
   * Writes the state out if that would save a restart more work than it costs now. `isStill` tells
   * whether no request of the model is under way, so that the state is the one that was committed.
   */
  async settle(live: LiveModel, isStill: () => boolean): Promise<void> {
    await live.snapshotting;
    if (!isStill() || live.hasGradients || live.replayMs <= this.#snapshotMs) return;
    this.#start(live);
    await live.snapshotting;
  }

  /** Writes a state that nothing in the journal leads to; it counts once `makeCurrent` is committed. */
  async writeNow(live: LiveModel, applied: number): Promise<SnapshotRecord> {
    await live.snapshotting;
    const state = await live.adapter.exportState({ optimizer: true });
    return this.#write(live, applied, state);
  }

  /** Makes a snapshot the one that counts; call it inside a transaction. Returns what it replaces. */
  makeCurrent(record: SnapshotRecord): Leftovers {
    const { snapshots, journal } = this.#context.store;
    snapshots.insert(record);
    return {
      folders: snapshots.removeBefore(record.modelId, record.applied),
      blobs: journal.truncate(record.modelId, record.applied),
    };
  }

  /** Forgets everything kept to bring a model back; call it inside a transaction. */
  forget(modelId: string): Leftovers {
    const { snapshots, journal } = this.#context.store;
    const all = Number.MAX_SAFE_INTEGER;
    return {
      folders: snapshots.removeBefore(modelId, all),
      blobs: journal.truncate(modelId, all),
    };
  }

  /** Deletes files that no record names any more. */
  async discard({ folders, blobs }: Leftovers): Promise<void> {
    await this.#folders.remove(folders);
    await this.#context.store.blobs.remove(blobs);
  }

  /** The newest state of a model that is whole, or undefined when there is none. */
  async load(
    modelId: string,
    modelFolder: string,
  ): Promise<{ applied: number; state: ParameterExport } | undefined> {
    for (const record of this.#context.store.snapshots.list(modelId)) {
      try {
        const digest = await this.#folders.digest(record.folder);
        if (digest !== record.digest) throw new Error("its digest does not match");
        const state = await this.#folders.read(record.folder, modelFolder);
        return { applied: record.applied, state };
      } catch (error) {
        this.#context.logger.error("a snapshot cannot be used", {
          model: modelId,
          applied: record.applied,
          error: error instanceof Error ? error.message : String(error),
        });
      }
    }
    return undefined;
  }

  removeOrphans(): Promise<number> {
    return this.#folders.removeOthers(this.#context.store.snapshots.folders());
  }

  #start(live: LiveModel): void {
    const running = this.#take(live)
      .catch((error: unknown) => {
        this.#context.logger.error("a snapshot failed", {
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
    const { store, logger, metrics } = this.#context;
    const startedAt = performance.now();
    // Both in one turn: the engine exports what is there before any request that comes later.
    const mark = live.mark();
    const state = await live.adapter.exportState({ optimizer: true });
    const record = await this.#write(live, mark.applied, state);
    const leftovers = await store.write(() => this.makeCurrent(record));
    live.noteSaved(mark);
    this.#snapshotMs = performance.now() - startedAt;
    metrics.snapshots.add();
    await this.discard(leftovers);
    logger.debug("snapshot written", {
      model: record.modelId,
      applied: record.applied,
      bytes: record.sizeBytes,
      ms: this.#snapshotMs,
    });
  }

  async #write(live: LiveModel, applied: number, state: ParameterExport): Promise<SnapshotRecord> {
    const { modelId, lora, baseModel } = live.model;
    const { folder, sizeBytes } = await this.#folders.write({ lora, baseModel, state });
    const digest = await this.#folders.digest(folder);
    const readBack = await this.#folders.read(folder, live.modelFolder);
    if (!isSameState(state, readBack)) {
      await this.#folders.remove([folder]);
      throw new Error("the state read back from disk is not the one written");
    }
    return { modelId, applied, folder, digest, sizeBytes, createdAt: this.#context.clock.now() };
  }
}

/** Files that no record names any more. */
export interface Leftovers {
  readonly folders: readonly string[];
  readonly blobs: readonly string[];
}

/** No such files. */
export const noLeftovers: Leftovers = { folders: [], blobs: [] };

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
