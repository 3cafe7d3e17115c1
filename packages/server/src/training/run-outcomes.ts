import { StoppedError, toFailure, type Failure } from "../errors/failure.js";
import type { Journal } from "../journal/journal.js";
import type { Logger } from "../log/logger.js";
import type { Recorder } from "../recording/recorder.js";
import type { Model } from "../store/models-table.js";
import type { RequestRow } from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import type { LiveModel } from "./live-models.js";
import { tokensOf, type Done } from "./operations/operation.js";
import type { Snapshots } from "./snapshots.js";

/** What outcomes are committed with. */
export interface OutcomeParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly snapshots: Snapshots;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What a request has done, and to which model in memory. */
export interface Performed {
  readonly done: Done;
  readonly live: LiveModel | null;
  readonly startedAt: number;
  readonly tookMs: number;
}

/** The progress of the model that is recorded with a failure. */
export interface Progress {
  /** The next number; null when the request never had its turn. */
  readonly nextSeq: number | null;
  readonly startedAt: number | null;
}

/** The outcomes of a model's requests, each one transaction with the progress of the model and its usage. */
export class RunOutcomes {
  readonly #parts: OutcomeParts;
  readonly #model: Model;
  #applied: number;

  constructor(parts: OutcomeParts, model: Model) {
    this.#parts = parts;
    this.#model = model;
    this.#applied = model.applied;
  }

  /** Makes what was done count; what cannot be committed is undone and throws. */
  async commit(
    request: RequestRow,
    { done, live, startedAt, tookMs }: Performed,
    nextSeq: number,
  ): Promise<void> {
    const { store, clock, journal, recorder } = this.#parts;
    const { modelId } = this.#model;
    const finishedAt = clock.now();
    const applied = this.#applied + (done.change === "none" ? 0 : 1);
    const tokens = tokensOf(done);
    const times = { startedAt, finishedAt, tookMs, tokens };
    const note = recorder.note(this.#model, request, done.update ?? {}, times);
    const change = done.change === "journaled" ? applied : null;
    try {
      const facts = { startedAt, finishedAt, applied: change, tokens };
      await journal.finish(request, done.result(), facts, () => {
        store.models.advance(modelId, nextSeq, applied, finishedAt);
        store.usage.add(this.#model, done.usage, finishedAt);
        done.write?.();
        note.write();
      });
    } catch (error) {
      await this.#cleanUp(done.undo);
      throw error;
    }
    this.#applied = applied;
    note.committed();
    if (live) this.#noteChange(live, request, done, tookMs);
    await this.#cleanUp(done.afterCommit);
  }

  /** Commits that a request failed, and returns how; never rejects. */
  async fail(
    request: RequestRow,
    error: unknown,
    { nextSeq, startedAt }: Progress,
  ): Promise<Failure> {
    const { store, clock, journal, logger, recorder } = this.#parts;
    const { modelId } = this.#model;
    const failure = toFailure(error, logger);
    const finishedAt = clock.now();
    const facts = { startedAt, finishedAt, applied: null, tokens: 0 };
    const mark = { kind: "failed", text: failure.error, subject: request.requestId };
    // A request that never had its turn, or was given up, did not fail by itself.
    const isOwnFailure = nextSeq !== null && !(error instanceof StoppedError);
    const times = { ...facts, tookMs: 0 };
    const note = recorder.note(this.#model, request, isOwnFailure ? { mark } : {}, times);
    await this.#cleanUp(async () => {
      await journal.finish(request, failure, facts, () => {
        if (nextSeq !== null) store.models.advance(modelId, nextSeq, this.#applied, finishedAt);
        if (request.seq === 0) store.models.setState(modelId, "failed", notCreated(failure));
        note.write();
      });
      note.committed();
    });
    return failure;
  }

  /** Makes a save count that no request has asked for. */
  async commitSave(save: Omit<Done, "result">): Promise<void> {
    const { store, recorder, clock } = this.#parts;
    const now = clock.now();
    const times = { startedAt: now, finishedAt: now, tookMs: 0, tokens: 0 };
    const request = { kind: "save_weights", acceptedAt: now } as const;
    const note = recorder.note(this.#model, request, save.update ?? {}, times);
    try {
      await store.write(() => {
        store.usage.add(this.#model, save.usage, now);
        save.write?.();
        note.write();
      });
    } catch (error) {
      await this.#cleanUp(save.undo);
      throw error;
    }
    note.committed();
    await this.#cleanUp(save.afterCommit);
  }

  #noteChange(live: LiveModel, request: RequestRow, { change }: Done, tookMs: number): void {
    if (change === "none") return;
    if (change === "replaced") live.noteReplaced();
    else live.noteApplied(request.kind === "forward_backward", request.payloadBytes, tookMs);
    this.#parts.snapshots.consider(live);
  }

  async #cleanUp(action: (() => Promise<void>) | undefined): Promise<void> {
    try {
      await action?.();
    } catch (error) {
      this.#parts.logger.error("cleaning up after a request failed", {
        model: this.#model.modelId,
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }
}

/** Why a model has ended that could not be created. */
export function notCreated({ error }: Failure): string {
  return `it could not be created: ${error}`;
}
