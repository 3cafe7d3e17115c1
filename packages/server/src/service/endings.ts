import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { Logger } from "../log/logger.js";
import type { Sampler } from "../sampling/sampler.js";
import { closedMessage, type Sessions } from "../sessions/sessions.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import type { LiveModels } from "../training/live-models.js";
import type { Snapshots } from "../training/snapshots.js";
import type { TrainingRuns } from "../training/training-runs.js";

/** Everything that models and sessions can have left somewhere. */
export interface EndingsParts {
  readonly store: Store;
  readonly sessions: Sessions;
  readonly runs: TrainingRuns;
  readonly liveModels: LiveModels;
  readonly snapshots: Snapshots;
  readonly sampler: Sampler;
  readonly checkpoints: Checkpoints;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Ends models and sessions, whatever their clients do. */
export class Endings {
  readonly #parts: EndingsParts;

  constructor(parts: EndingsParts) {
    this.#parts = parts;
  }

  /** Ends one model; what waits fails with the reason. */
  async endModel(modelId: string, reason: string): Promise<void> {
    const { store, logger } = this.#parts;
    await store.write(() => store.models.setState(modelId, "unloaded", reason));
    await this.#takeDown(modelId, reason);
    logger.info("model ended", { model: modelId, reason });
  }

  /**
   * Ends a session and what belongs to it: its models are unloaded, what waits fails with the reason,
   * what was kept to bring the models back and its ephemeral sampler weights are deleted. Named
   * checkpoints stay.
   */
  async closeSession(sessionId: string, reason: string): Promise<void> {
    const { store, clock, logger, sessions, sampler, checkpoints } = this.#parts;
    const closedAt = clock.now();
    const message = closedMessage({ sessionId, closedAt, closeReason: reason });
    const models = await store.write(() => {
      store.sessions.close(sessionId, reason, closedAt);
      const open = store.models
        .bySession(sessionId)
        .filter(({ state }) => state === "creating" || state === "live");
      for (const { modelId } of open) store.models.setState(modelId, "unloaded", reason);
      return open;
    });
    sessions.forget(sessionId);
    await sampler.stopSession(sessionId, message);
    for (const { modelId } of models) await this.#takeDown(modelId, reason);
    for (const checkpoint of store.checkpoints.ephemeral()) {
      if (checkpoint.sessionId === sessionId) {
        await checkpoints.remove(checkpoint, "checkpoint.dropped");
      }
    }
    logger.info("session closed", { session: sessionId, reason, models: models.length });
  }

  /** Takes a model that has ended out of its run, of memory and of the disk. */
  async #takeDown(modelId: string, reason: string): Promise<void> {
    const { store, runs, liveModels, snapshots } = this.#parts;
    await runs.end(modelId, reason);
    await liveModels.drop(modelId);
    await snapshots.discard(await store.write(() => snapshots.forget(modelId)));
  }
}
