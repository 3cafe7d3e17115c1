/** Runs tasks one after the other, in the order in which they were added. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Adds a task; a task that fails does not stop those behind it. One that is aborted while it waits fails
   * at once and is never started.
   */
  add<T>(task: () => Promise<T> | T, signal?: AbortSignal): Promise<T> {
    let waiting = true;
    const result = this.#last.then(() => {
      waiting = false;
      signal?.throwIfAborted();
      return task();
    });
    this.#last = result.catch(() => {});
    if (signal === undefined) return result;
    return new Promise<T>((resolve, reject) => {
      const abort = (): void => {
        if (waiting) reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      const stopListening = (): void => signal.removeEventListener("abort", abort);
      void result.then(resolve, reject).finally(stopListening);
    });
  }
}
