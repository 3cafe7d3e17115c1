import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { Context } from "../context/context.js";
import type { ModelLanes } from "./model-lanes.js";
import type { Sessions } from "./sessions.js";

/** What the janitor looks after. */
export interface JanitorParts {
  readonly sessions: Sessions;
  readonly lanes: ModelLanes;
  readonly checkpoints: Checkpoints;
  readonly closeSession: (sessionId: string, reason: string) => Promise<void>;
}

const roundMs = 1000;
const retentionRounds = 30;

/** Goes round once a second: closes dead sessions, deletes what has expired, keeps memory and disk bounded. */
export class Janitor {
  readonly #context: Context;
  readonly #parts: JanitorParts;
  #cancel: (() => void) | undefined;
  #round = 0;

  constructor(context: Context, parts: JanitorParts) {
    this.#context = context;
    this.#parts = parts;
  }

  start(): void {
    this.#cancel = this.#context.clock.after(roundMs, () => {
      this.#goRound()
        .catch((error: unknown) => {
          this.#context.logger.error("cleaning up failed", { error: String(error) });
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
    const { sessions, checkpoints, lanes, closeSession } = this.#parts;
    const { sessionTimeoutMs } = this.#context.limits;
    const reason = `no sign of life from its client for ${Math.round(sessionTimeoutMs / 1000)} s`;
    await Promise.all(sessions.idle().map((sessionId) => closeSession(sessionId, reason)));
    await checkpoints.sweep();
    await lanes.tidy();
    if (this.#round++ % retentionRounds === 0) await this.#dropOldThings();
  }

  async #dropOldThings(): Promise<void> {
    const { store, clock, limits, recorder } = this.#context;
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
