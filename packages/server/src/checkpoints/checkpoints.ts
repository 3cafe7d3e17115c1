import type { ParameterExport } from "@tinker-ts/engine";
import { ApiError, badRequest, conflict, notFound } from "../errors/api-error.js";
import { DamagedError } from "../errors/damaged-error.js";
import type { ServerLimits } from "../prices.js";
import type { Logger } from "../log/logger.js";
import type { CheckpointKind, CheckpointRecord } from "../store/checkpoints-table.js";
import { excesses } from "../store/fair-level.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { parsePath, pathOf } from "./checkpoint-names.js";
import type { StateFolders } from "./state-folders.js";

/** Dependencies of checkpoints. */
export interface CheckpointsParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
}

/** Saved weights: who may use them, how long they stay, and their files. */
export class Checkpoints {
  readonly #parts: CheckpointsParts;
  readonly #onRemoved: (folder: string) => void;
  readonly folders: StateFolders;

  constructor(parts: CheckpointsParts, folders: StateFolders, onRemoved: (folder: string) => void) {
    this.#parts = parts;
    this.folders = folders;
    this.#onRemoved = onRemoved;
  }

  /** The checkpoint at a path, when one of `readers` owns it or it is public. */
  readable(tinkerPath: string, readers: readonly string[]): CheckpointRecord {
    const { trainingRunId, checkpointType, name } = parsePath(tinkerPath);
    const found = this.#current(trainingRunId, checkpointType, name);
    if (found && (found.isPublic || readers.includes(found.owner))) return found;
    throw notFound(`checkpoint ${tinkerPath}`);
  }

  /** The checkpoint at a path, of any owner. */
  existing(tinkerPath: string): CheckpointRecord {
    const { trainingRunId, checkpointType, name } = parsePath(tinkerPath);
    const found = this.#current(trainingRunId, checkpointType, name);
    if (found) return found;
    throw notFound(`checkpoint ${tinkerPath}`);
  }

  /** Reads the weights of a checkpoint; `modelFolder` is that of its base model. */
  read(checkpoint: CheckpointRecord, modelFolder: string): Promise<ParameterExport> {
    return this.#noticing(checkpoint, () => this.folders.read(checkpoint, modelFolder));
  }

  /** Verifies the files of a checkpoint. */
  verify(checkpoint: CheckpointRecord): Promise<void> {
    return this.#noticing(checkpoint, () => this.folders.verify(checkpoint));
  }

  /** A checkpoint of a run that belongs to `owner`. */
  owned(runId: string, type: CheckpointKind, name: string, owner: string): CheckpointRecord {
    const found = this.#current(runId, type, name);
    if (found?.owner === owner) return found;
    throw notFound(`checkpoint ${pathOf({ runId, type, name })}`);
  }

  /** Refuses one more checkpoint to an owner who has as many as there may be. */
  checkQuota(owner: string): void {
    const { store, limits } = this.#parts;
    const { count, bytes } = store.checkpoints.usage(owner);
    if (count < limits.maxCheckpoints && bytes < limits.maxCheckpointBytes) return;
    const most = `maxCheckpoints is ${limits.maxCheckpoints}, maxCheckpointBytes ${limits.maxCheckpointBytes}`;
    throw badRequest(
      "path",
      `you have ${count} checkpoints of ${bytes} bytes; ${most}: delete some, or give them a TTL`,
    );
  }

  /** Notes that an ephemeral checkpoint is in use, to the minute. */
  noteUse({ folder, isEphemeral, usedAt }: CheckpointRecord): void {
    const { store, clock, logger } = this.#parts;
    if (!isEphemeral || clock.now() - usedAt < 60_000) return;
    store
      .write(() => store.checkpoints.markUsed(folder, clock.now()))
      .catch((error: unknown) => logger.warn("cannot note a use", { error: String(error) }));
  }

  async setPublic(
    checkpoint: CheckpointRecord,
    isPublic: boolean,
    purpose: string | null = null,
  ): Promise<void> {
    if (checkpoint.isPublic === isPublic) {
      const state = isPublic ? "public" : "private";
      throw conflict(`checkpoint ${pathOf(checkpoint)} is already ${state}`);
    }
    const event = isPublic ? "checkpoint.published" : "checkpoint.unpublished";
    await this.#change(
      checkpoint,
      event,
      () => this.#parts.store.checkpoints.setPublic(checkpoint.folder, isPublic),
      purpose,
    );
  }

  async setTtl(
    checkpoint: CheckpointRecord,
    ttlMs: number | null,
    purpose: string | null = null,
  ): Promise<void> {
    const expiresAt = ttlMs === null ? null : this.#parts.clock.now() + ttlMs;
    await this.#change(
      checkpoint,
      "checkpoint.ttl_changed",
      () => this.#parts.store.checkpoints.setExpiry(checkpoint.folder, expiresAt),
      purpose,
    );
  }

  /** Deletes a checkpoint and its files. */
  async remove(
    checkpoint: CheckpointRecord,
    event = "checkpoint.deleted",
    purpose: string | null = null,
  ): Promise<void> {
    const { store, clock, logger } = this.#parts;
    await this.#change(
      checkpoint,
      event,
      () => store.checkpoints.markDeleted(checkpoint.folder, clock.now()),
      purpose,
    );
    await this.removeFiles(checkpoint.folder);
    const level = checkpoint.isEphemeral ? "debug" : "info";
    logger[level](event.replace(".", " "), { path: pathOf(checkpoint) });
  }

  /** Deletes the files of a checkpoint that is recorded as deleted. */
  async removeFiles(folder: string): Promise<void> {
    this.#onRemoved(folder);
    await this.folders.remove([folder]);
  }

  /** Deletes expired checkpoints, and ephemeral ones that are unused for too long or too many. */
  async sweep(): Promise<void> {
    const { store, clock, limits } = this.#parts;
    const now = clock.now();
    for (const expired of store.checkpoints.expired(now)) {
      await this.remove(expired, "checkpoint.expired");
    }
    const ephemeral = store.checkpoints.ephemeral();
    const sizes = new Map<string, number>();
    for (const { owner, sizeBytes } of ephemeral) {
      sizes.set(owner, (sizes.get(owner) ?? 0) + sizeBytes);
    }
    const excess = new Map(excesses(sizes, limits.maxEphemeralBytes));
    for (const checkpoint of ephemeral) {
      const isStale = checkpoint.usedAt < now - limits.ephemeralTtlMs;
      const left = excess.get(checkpoint.owner) ?? 0;
      if (!isStale && left <= 0) continue;
      excess.set(checkpoint.owner, left - checkpoint.sizeBytes);
      await this.remove(checkpoint, "checkpoint.dropped");
    }
  }

  /** Records that a checkpoint is damaged. */
  async #noticing<T>(checkpoint: CheckpointRecord, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof DamagedError)) throw error;
      const { store, logger } = this.#parts;
      const tinkerPath = pathOf(checkpoint);
      logger.error("a checkpoint is damaged", { path: tinkerPath, error: error.message });
      await store.write(() => store.checkpoints.markDamaged(checkpoint.folder, error.message));
      const text = `checkpoint ${tinkerPath} cannot be used: ${error.message}; use another one`;
      throw new ApiError(500, text, { code: "damaged", cause: error });
    }
  }

  #current(runId: string, type: CheckpointKind, name: string): CheckpointRecord | undefined {
    const { store, clock } = this.#parts;
    // A session's first run may go without its number.
    const found =
      store.checkpoints.get(runId, type, name) ??
      store.checkpoints.get(`${runId}:train:0`, type, name);
    const isExpired = found?.expiresAt != null && found.expiresAt <= clock.now();
    return isExpired ? undefined : found;
  }

  async #change(
    checkpoint: CheckpointRecord,
    event: string,
    change: () => void,
    purpose: string | null,
  ): Promise<void> {
    const { store, clock } = this.#parts;
    await store.write(() => {
      change();
      if (checkpoint.isEphemeral) return;
      store.audit.add({
        at: clock.now(),
        owner: checkpoint.owner,
        event,
        modelId: checkpoint.runId,
        tinkerPath: pathOf(checkpoint),
        purpose,
      });
    });
  }
}
