import { EngineError } from "../errors.js";
import type { Device } from "./device.js";
const stopTimeoutMs = 10_000;

/** Places in the shared memory. */
const [underWay, stopWanted] = [0, 1];

/**
 * Lets a process exit cleanly while one of its threads computes.
 *
 * A thread that is stopped inside a call of ONNX Runtime cannot take the result, and its binding then
 * aborts the whole process. So the thread's owner requests a stop when the process exits, and waits
 * until the running call has returned; the computing thread starts no other.
 */
export class NativeCalls {
  /** Shared by the two threads. */
  readonly memory: SharedArrayBuffer;
  readonly #state: Int32Array;

  constructor(memory = new SharedArrayBuffer(8)) {
    this.memory = memory;
    this.#state = new Int32Array(memory);
  }

  /** Makes a native call, unless a stop was requested: then the thread sleeps until it is terminated. */
  async run<T>(call: () => Promise<T>): Promise<T> {
    Atomics.add(this.#state, underWay, 1);
    try {
      // Increment before reading the flag, while `stop` does the reverse: at least one of the two sees the other.
      if (Atomics.load(this.#state, stopWanted) === 0) return await call();
    } finally {
      Atomics.sub(this.#state, underWay, 1);
      Atomics.notify(this.#state, underWay);
    }
    Atomics.wait(this.#state, stopWanted, 1);
    throw new Error("the process is exiting");
  }

  /** Blocks until no call is running. */
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
 * Classifies device failures by the messages of ONNX Runtime and of Dawn, its WebGPU implementation. "[Device] is
 * lost" and "[Invalid Buffer]" are reported for drivers that lose the device or refuse memory; the other
 * messages come from their sources.
 */
const failures = [
  {
    code: "no_device",
    words: /failed to get a webgpu adapter|no supported adapters|not supported in this build/i,
    what: "has no adapter that can be used",
    suggestion: 'Install a driver, or use device "cpu".',
  },
  {
    code: "device_lost",
    words:
      /device\]? (is|was) lost|device lost|lost device|DXGI_ERROR_DEVICE|VK_ERROR_DEVICE_LOST/i,
    what: "was lost during a computation",
    suggestion: "Create a new engine and load its models again.",
  },
  {
    code: "device_out_of_memory",
    // Memory that was refused is noticed when it is first used.
    words:
      /invalid buffer|out of memory|out_of_memory|exceeds the max buffer size|allocation size too large|failed to allocate|bad allocation/i,
    what: "does not have enough memory",
    suggestion: 'Use a smaller model, shorter sequences or device "cpu".',
  },
  // Other drivers may use other messages. A device is not reliable after an unknown failure either.
  {
    code: "device_failed",
    words: /(?:)/,
    what: "failed",
    suggestion: 'Use a new engine or device "cpu", and report this.',
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
  const { code, what, suggestion } = failure;
  const message = `the GPU ${what} (${lastLine(reason)}). ${suggestion}`;
  return new EngineError(code, message, { category: "internal", cause: error });
}

/** The message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Messages of ONNX Runtime begin with a source location; the reason follows. */
function lastLine(reason: string): string {
  const place = reason.lastIndexOf(" was false. ");
  const words = place < 0 ? reason : reason.slice(place + " was false. ".length);
  return words.split("\n")[0] ?? words;
}
