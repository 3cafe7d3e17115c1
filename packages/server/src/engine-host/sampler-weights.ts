import type { ParameterExport } from "@tinker-ts/engine";
import type { FrozenWeights } from "../engine-port/engine-port.js";
import type { ServerLimits } from "../prices.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";
import { adapterOptions } from "./adapter-options.js";
import type { BaseModels } from "./base-models.js";

/** Reads the weights of a checkpoint; the folder is that of its base model. */
type ReadCheckpoint = (
  checkpoint: CheckpointRecord,
  modelFolder: string,
) => Promise<ParameterExport>;

interface Held {
  readonly weights: Promise<FrozenWeights>;
  users: number;
  isDropped: boolean;
}

/**
 * Weights of checkpoints, frozen for sampling in the engine's memory.
 *
 * - Loaded on first use; a save puts its own there at once.
 * - The least recently used ones are evicted when there are too many, never one that is in use.
 */
export class SamplerWeights {
  readonly #bases: BaseModels;
  readonly #read: ReadCheckpoint;
  readonly #maxHeld: number;
  /** By checkpoint folder, least recently used first. */
  readonly #held = new Map<string, Held>();

  constructor(
    bases: BaseModels,
    read: ReadCheckpoint,
    limits: Pick<ServerLimits, "maxLoadedSamplers">,
  ) {
    this.#bases = bases;
    this.#read = read;
    this.#maxHeld = limits.maxLoadedSamplers;
  }

  get count(): number {
    return this.#held.size;
  }

  /** Runs `work` with the weights of a checkpoint; they stay in memory at least that long. */
  async use<T>(
    checkpoint: CheckpointRecord,
    work: (weights: FrozenWeights) => Promise<T>,
  ): Promise<T> {
    const held = this.#held.get(checkpoint.folder) ?? this.#load(checkpoint);
    this.#held.delete(checkpoint.folder);
    this.#held.set(checkpoint.folder, held);
    held.users++;
    try {
      return await work(await held.weights);
    } finally {
      held.users--;
      if (held.isDropped) this.#release(held);
      else this.#trim();
    }
  }

  /** Keeps the weights that a save has just frozen. */
  put(folder: string, weights: FrozenWeights): void {
    this.#held.set(folder, { weights: Promise.resolve(weights), users: 0, isDropped: false });
    this.#trim();
  }

  /** Frees the weights of a deleted checkpoint once they are unused. */
  drop(folder: string): void {
    const held = this.#held.get(folder);
    if (!held) return;
    this.#held.delete(folder);
    held.isDropped = true;
    this.#release(held);
  }

  /** Drops everything after an engine failure. */
  reset(): void {
    this.#held.clear();
  }

  #load(checkpoint: CheckpointRecord): Held {
    const weights = this.#freeze(checkpoint);
    const held: Held = { weights, users: 0, isDropped: false };
    weights.catch(() => {
      if (this.#held.get(checkpoint.folder) === held) this.#held.delete(checkpoint.folder);
    });
    return held;
  }

  async #freeze(checkpoint: CheckpointRecord): Promise<FrozenWeights> {
    const base = await this.#bases.load(checkpoint.baseModel, checkpoint.runId);
    const { folder: modelFolder } = await this.#bases.find(checkpoint.baseModel);
    const state = await this.#read(checkpoint, modelFolder);
    const adapter = await base.createAdapter({
      ...adapterOptions(checkpoint.lora),
      forSampling: true,
    });
    try {
      await adapter.importState({ tensors: state.tensors }, { optimizer: false });
      return await adapter.snapshot();
    } finally {
      await adapter.release();
    }
  }

  #trim(): void {
    let excess = this.#held.size - this.#maxHeld;
    for (const [folder, held] of this.#held) {
      if (excess <= 0) return;
      if (held.users > 0) continue;
      this.drop(folder);
      excess--;
    }
  }

  #release(held: Held): void {
    if (held.users > 0) return;
    held.weights.then((weights) => weights.release()).catch(() => {});
  }
}
