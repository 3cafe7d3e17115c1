import type { TrainedAdapter } from "../engine-port/engine-port.js";
import { isEngineRefusal } from "../errors/failure.js";
import type { Model } from "../store/models-table.js";

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
