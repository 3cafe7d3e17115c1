import { NotFoundError } from "../errors/api-error.js";
import type { CancelTimer } from "../runtime/clock.js";
import type { Runtime } from "../runtime/runtime.js";
import type { ClientDynamicConfigResponse } from "../types/service.js";

const shortestIntervalSec = 10;
const defaults: ClientDynamicConfigResponse = { refreshIntervalSec: 300 };

/** Settings that the server may change while a client runs; readers ask for `current` each time. */
export class DynamicConfig {
  readonly #runtime: Runtime;
  readonly #fetch: (isBackground: boolean) => Promise<ClientDynamicConfigResponse>;
  #current: ClientDynamicConfigResponse;
  #cancel: CancelTimer | undefined;
  #isStopped = false;

  constructor(
    runtime: Runtime,
    fetch: (isBackground: boolean) => Promise<ClientDynamicConfigResponse>,
    snapshot: ClientDynamicConfigResponse = defaults,
  ) {
    this.#runtime = runtime;
    this.#fetch = fetch;
    this.#current = snapshot;
  }

  get current(): ClientDynamicConfigResponse {
    return this.#current;
  }

  /** The first fetch; servers without the endpoint have the defaults. */
  async load(): Promise<void> {
    try {
      this.#current = await this.#fetch(false);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
  }

  /** Fetches again and again in the background; a failure keeps the old values. */
  startRefreshing(): void {
    if (this.#isStopped || this.#cancel) return;
    const intervalSec = Math.max(this.#current.refreshIntervalSec, shortestIntervalSec);
    this.#cancel = this.#runtime.clock.schedule(intervalSec * 1000, () => void this.#refresh());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  async #refresh(): Promise<void> {
    try {
      this.#current = await this.#fetch(true);
    } catch (error) {
      this.#runtime.logger.debug(`kept the old dynamic configuration: ${String(error)}`);
    }
    this.#cancel = undefined;
    this.startRefreshing();
  }
}
