const stopTimeoutMs = 10_000;

/** Places in the shared memory. */
const [underWay, stopWanted] = [0, 1];

/**
 * Lets a process exit in peace while one of its threads computes.
 *
 * A thread that is stopped inside a call of ONNX Runtime cannot take the result, and its binding then
 * aborts the whole process. So whoever owns the thread asks for a stop when the process exits, and waits
 * until the call under way is over; the computing thread begins no other.
 */
export class NativeCalls {
  /** Shared by the two threads. */
  readonly memory: SharedArrayBuffer;
  readonly #state: Int32Array;

  constructor(memory = new SharedArrayBuffer(8)) {
    this.memory = memory;
    this.#state = new Int32Array(memory);
  }

  /** Makes a native call, unless a stop is wanted: then the thread sleeps until it is ended. */
  async run<T>(call: () => Promise<T>): Promise<T> {
    Atomics.add(this.#state, underWay, 1);
    try {
      // Entering comes before looking, and `stop` does it the other way round: one of them sees the other.
      if (Atomics.load(this.#state, stopWanted) === 0) return await call();
    } finally {
      Atomics.sub(this.#state, underWay, 1);
      Atomics.notify(this.#state, underWay);
    }
    Atomics.wait(this.#state, stopWanted, 1);
    throw new Error("the process is exiting");
  }

  /** Blocks until no call is under way any more. */
  stop(): void {
    Atomics.store(this.#state, stopWanted, 1);
    const endMs = performance.now() + stopTimeoutMs;
    for (;;) {
      const calls = Atomics.load(this.#state, underWay);
      const restMs = endMs - performance.now();
      if (calls === 0 || restMs <= 0) return;
      Atomics.wait(this.#state, underWay, calls, restMs);
    }
  }
}
