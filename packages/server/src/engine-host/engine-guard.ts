import { isEngineCrash } from "../errors/failure.js";
import type { Logger } from "../log/logger.js";

/**
 * Runs work that needs the engine and restarts the engine after a failure. Everything in flight fails
 * at once then; only the first failure starts a new engine, the others find it started.
 */
export class EngineGuard {
  readonly #logger: Logger;
  readonly #restart: (broken: string) => Promise<void>;
  #generation = 0;

  /** `restart` receives the error code. */
  constructor(logger: Logger, restart: (broken: string) => Promise<void>) {
    this.#logger = logger;
    this.#restart = restart;
  }

  /** Runs `work`; retries it after engine failures, up to `maxAttempts` attempts. */
  async run<T>(maxAttempts: number, work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const generation = this.#generation;
      try {
        return await work();
      } catch (error) {
        if (!isEngineCrash(error)) throw error;
        if (generation === this.#generation) {
          this.#generation++;
          const { code, message } = error;
          this.#logger.error("the engine broke; starting it again", { code, reason: message });
          await this.#restart(code);
        }
        if (attempt === maxAttempts) throw error;
      }
    }
  }
}
