import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { ServerLimits } from "../prices.js";
import type { Logger } from "../log/logger.js";
import type { Recorder } from "../recording/recorder.js";
import type { Sampler } from "../sampling/sampler.js";
import type { Sessions } from "../sessions/sessions.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import type { TrainingRuns } from "../training/training-runs.js";
import type { Endings } from "./endings.js";

/** What the janitor looks after. */
export interface JanitorParts {
  readonly store: Store;
  readonly sessions: Sessions;
  readonly runs: TrainingRuns;
  readonly sampler: Sampler;
  readonly checkpoints: Checkpoints;
  readonly endings: Endings;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
}

const roundMs = 1000;
const retentionRounds = 30;

/** Goes round once a second: closes dead sessions, deletes what has expired, keeps memory and disk bounded. */
export class Janitor {
  readonly #parts: JanitorParts;
  #cancel: (() => void) | undefined;
  #round = 0;

  constructor(parts: JanitorParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#cancel = this.#parts.clock.after(roundMs, () => {
      this.#goRound()
        .catch((error: unknown) => {
          this.#parts.logger.error("cleaning up failed", { error: String(error) });
        })
        .finally(() => {
          if (this.#cancel) this.start();
        });
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #goRound(): Promise<void> {
    const { sessions, checkpoints, runs, endings, limits } = this.#parts;
    const { sessionTimeoutMs } = limits;
    const reason = `no sign of life from its client for ${Math.round(sessionTimeoutMs / 1000)} s`;
    await Promise.all(sessions.idle().map((sessionId) => endings.closeSession(sessionId, reason)));
    for (const sessionId of sessions.finishing()) await this.#wrapUp(sessionId);
    await checkpoints.sweep();
    await runs.tidy();
    if (this.#round++ % retentionRounds === 0) await this.#dropOldThings();
  }

  /** Closes a finished session once what it has accepted is done and nothing uses its samplers any more. */
  async #wrapUp(sessionId: string): Promise<void> {
    const { store, limits, sessions, runs, sampler, endings } = this.#parts;
    const reason = "its client finished the session";
    const models = store.models.bySession(sessionId).filter(({ modelId }) => runs.get(modelId));
    for (const { modelId } of models) {
      const run = runs.get(modelId);
      // What waits behind a number that never came waits for ever.
      if (!run?.isIdle || run.isHeld) return;
    }
    if (sampler.hasPending(sessionId)) return;
    const isUsed = sessions.unusedMs(sessionId) < limits.ephemeralTtlMs;
    if (!isUsed || !store.samplers.hasJoined(sessionId))
      return endings.closeSession(sessionId, reason);
    for (const { modelId } of models) await endings.endModel(modelId, reason);
  }

  async #dropOldThings(): Promise<void> {
    const { store, clock, limits, recorder } = this.#parts;
    const now = clock.now();
    const before = now - limits.recordTtlMs;
    const blobs = await store.write(() => {
      store.audit.prune(before);
      store.usage.prune(before);
      store.checkpoints.prune(before);
      store.models.prune(before);
      store.sessions.prune(before);
      store.samplers.prune();
      return store.retention.apply({ now, ...limits });
    });
    await store.blobs.remove(blobs);
    await recorder.tidy();
  }
}
