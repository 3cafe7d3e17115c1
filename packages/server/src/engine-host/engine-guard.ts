import { isEngineCrash } from "../errors/failure.js";
import type { Logger } from "../log/logger.js";

/**
 * Runs work that needs the engine and brings the engine back when it broke. Everything in flight fails
 * at once then; only the first to notice starts a new engine, the others find it started.
 */
export class EngineGuard {
  readonly #logger: Logger;
  readonly #restart: (broken: string) => Promise<void>;
  #generation = 0;

  /** `restart` is told the code of what broke. */
  constructor(logger: Logger, restart: (broken: string) => Promise<void>) {
    this.#logger = logger;
    this.#restart = restart;
  }

  /** Does `work`; when the engine breaks under it, again, up to `maxAttempts` times altogether. */
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
