import { setMaxListeners } from "node:events";
import { unavailable, type ApiError } from "../errors/api-error.js";
import { Scheduler } from "../scheduler.js";
import { DecodingThread } from "./decoding-thread.js";
import type { ThreadWork } from "./messages.js";

/**
 * Threads that decode, so that the event loop stays free.
 *
 * - An owner has one of them at most, and starts a thread only when there is something to do: what one sends
 *   holds up what others send only when several of them send large things at once.
 * - When all are taken, owners take turns.
 */
export class DecodingThreads {
  readonly #threads: readonly DecodingThread[];
  readonly #scheduler: Scheduler<"threads">;
  readonly #closing = new AbortController();

  /**
   * `maxThreads` is the number of owners whose things are decoded at the same time, `maxWorkMs` the longest work
   * on one thing.
   */
  constructor(maxThreads = 3, maxWorkMs = 30_000) {
    this.#threads = Array.from({ length: maxThreads }, () => new DecodingThread(maxWorkMs));
    // Everything that waits listens to it.
    setMaxListeners(0, this.#closing.signal);
    this.#scheduler = new Scheduler({ threads: { capacity: maxThreads, maxPerOwner: 1 } });
  }

  /** Does work for an owner; the memory of `transfer` is used up. */
  async run(owner: string, work: ThreadWork, transfer: readonly Uint8Array[]): Promise<unknown> {
    const request = { resource: "threads", owner, group: "" } as const;
    const turn = await this.#scheduler.turn(request, this.#closing.signal);
    try {
      this.#closing.signal.throwIfAborted();
      const thread = this.#threads.find(({ isFree }) => isFree);
      return await thread!.run(work, transfer);
    } finally {
      turn.end();
    }
  }

  /** Ends the threads and refuses what waits for them. */
  async close(): Promise<void> {
    this.#closing.abort(stopping());
    await Promise.all(this.#threads.map((thread) => thread.end(stopping())));
  }
}

function stopping(): ApiError {
  return unavailable("the server is shutting down");
}
