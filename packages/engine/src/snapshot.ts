import type { WorkerClient } from "./runtime/worker-client.js";

/** Weights of an adapter at one moment, to sample from. */
export class Snapshot {
  /** Number of the snapshot in its engine. */
  readonly id: number;
  readonly #client: WorkerClient;

  /** Use `Adapter.snapshot`. */
  constructor(client: WorkerClient, id: number) {
    this.#client = client;
    this.id = id;
  }

  /** Frees the weights; requests that already use them continue. */
  async release(): Promise<void> {
    await this.#client.call("releaseSnapshot", { snapshot: this.id });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
