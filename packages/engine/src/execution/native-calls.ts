import { EngineError } from "../errors.js";
import type { Device } from "./device.js";
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

/**
 * What failed of a device, by the words of ONNX Runtime and of Dawn, the WebGPU that it carries. "[Device] is
 * lost" and "[Invalid Buffer]" are what they say of a driver that loses the device or refuses memory; the other
 * words are read in their sources.
 */
const failures = [
  {
    code: "no_device",
    words: /failed to get a webgpu adapter|no supported adapters|not supported in this build/i,
    what: "has no adapter that can be used",
    wayOut: 'Install a driver, or use device "cpu".',
  },
  {
    code: "device_lost",
    words:
      /device\]? (is|was) lost|device lost|lost device|DXGI_ERROR_DEVICE|VK_ERROR_DEVICE_LOST/i,
    what: "was lost while it computed",
    wayOut: "What it held must be loaded again, by a new engine.",
  },
  {
    code: "device_out_of_memory",
    // Memory that was refused is noticed when it is first used.
    words:
      /invalid buffer|out of memory|out_of_memory|exceeds the max buffer size|allocation size too large|failed to allocate|bad allocation/i,
    what: "has not enough memory for this",
    wayOut: 'Use a smaller model, shorter sequences or device "cpu".',
  },
  // Other drivers may use other words. What failed in a way that is not known cannot be relied on either.
  {
    code: "device_failed",
    words: /(?:)/,
    what: "failed",
    wayOut: 'Use a new engine or device "cpu", and report this.',
  },
] as const;

/** An error of ONNX Runtime as one of the engine. */
export function runtimeError(error: unknown, { name }: Device): EngineError {
  const reason = messageOf(error).trim();
  const failure = name === "gpu" ? failures.find(({ words }) => words.test(reason)) : undefined;
  if (failure === undefined) {
    const message = `ONNX Runtime failed: ${reason}`;
    return new EngineError("runtime_failed", message, { category: "internal", cause: error });
  }
  const { code, what, wayOut } = failure;
  const message = `the GPU ${what} (${lastLine(reason)}). ${wayOut}`;
  return new EngineError(code, message, { category: "internal", cause: error });
}

/** The words of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Messages of ONNX Runtime begin with the place in its source; what happened stands behind. */
function lastLine(reason: string): string {
  const place = reason.lastIndexOf(" was false. ");
  const words = place < 0 ? reason : reason.slice(place + " was false. ".length);
  return words.split("\n")[0] ?? words;
}
