import { unavailable, type ApiError } from "../errors/api-error.js";
import { FairQueue } from "../queue/fair-queue.js";
import { DecodingThread, type Job } from "./decoding-thread.js";
import type { ThreadWork } from "./messages.js";

/**
 * Threads that decode, so that the event loop stays free.
 *
 * - An owner has one of them at most, and starts a thread only when there is something to do: what one sends
 *   holds up what others send only when several of them send large things at once.
 * - When all are taken, owners take turns.
 */
export class DecodingThreads {
  readonly #waiting = new FairQueue<Job & { readonly owner: string }>();
  readonly #threads: readonly DecodingThread[];
  readonly #served = new Map<DecodingThread, string>();
  #isClosed = false;

  /**
   * `maxThreads` is the number of owners whose things are decoded at the same time, `maxWorkMs` the longest work
   * on one thing.
   */
  constructor(maxThreads = 3, maxWorkMs = 30_000) {
    this.#threads = Array.from(
      { length: maxThreads },
      () => new DecodingThread(maxWorkMs, () => this.#startMore()),
    );
  }

  /** Does work for an owner; the memory of `transfer` is used up. */
  run(owner: string, work: ThreadWork, transfer: readonly Uint8Array[]): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(stopping());
    return new Promise((resolve, reject) => {
      this.#waiting.add(owner, "", { owner, work, transfer, resolve, reject });
      this.#startMore();
    });
  }

  /** Ends the threads and refuses what waits for them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (let job = this.#waiting.take(); job; job = this.#waiting.take()) job.reject(stopping());
    await Promise.all(this.#threads.map((thread) => thread.end(stopping())));
  }

  #startMore(): void {
    for (const thread of this.#threads) {
      if (!thread.isFree) continue;
      this.#served.delete(thread);
      const busy = new Set(this.#served.values());
      const job = this.#waiting.take((owner) => !busy.has(owner));
      if (!job) continue;
      this.#served.set(thread, job.owner);
      thread.start(job);
    }
  }
}

function stopping(): ApiError {
  return unavailable("the server is shutting down");
}
