import { Worker } from "node:worker_threads";
import { ApiError } from "../errors/api-error.js";
import { codeOf } from "../errors/code-of.js";
import { DamagedError } from "../errors/damaged-error.js";
import type { ThreadAnswer, ThreadOrder, ThreadWork } from "./messages.js";
import { UndecodableBody } from "./undecodable-body.js";

/** Memory of the thread; what unfolds to more is refused. */
const heapMegabytes = 3072;

/** A thread without work for this long ends, and its memory with it. */
const idleMs = 20_000;

/** Work under way. */
interface Job {
  readonly id: number;
  readonly timeout: NodeJS.Timeout;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A thread that decodes one thing at a time. What takes too much memory or time costs its sender the
 * request and the thread its life; the next one gets a new thread.
 */
export class DecodingThread {
  #worker: Worker | undefined;
  #running: Job | undefined;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 0;
  readonly #maxWorkMs: number;

  constructor(maxWorkMs: number) {
    this.#maxWorkMs = maxWorkMs;
  }

  get isFree(): boolean {
    return this.#running === undefined;
  }

  /** Does work; there must be none under way. The memory of `transfer` is handed over. */
  run(work: ThreadWork, transfer: readonly Uint8Array[]): Promise<unknown> {
    clearTimeout(this.#idle);
    const order: ThreadOrder = { id: this.#nextId++, work };
    const tooLong = new ApiError(413, "it takes too long to read; send fewer data per request");
    return new Promise((resolve, reject) => {
      const worker = (this.#worker ??= this.#open());
      worker.postMessage(order, buffersOf(transfer));
      const timeout = setTimeout(() => void this.end(tooLong), this.#maxWorkMs).unref();
      this.#running = { id: order.id, timeout, resolve, reject };
    });
  }

  /** Ends the thread; what it works on fails with the reason. */
  async end(reason: unknown): Promise<void> {
    clearTimeout(this.#idle);
    const running = this.#running;
    const worker = this.#worker;
    this.#running = undefined;
    this.#worker = undefined;
    if (running) {
      clearTimeout(running.timeout);
      running.reject(reason);
    }
    await worker?.terminate();
  }

  #open(): Worker {
    const worker = new Worker(program, {
      name: "tinker-ts decoding",
      // Flags of the process hold for its threads, V8's too, but naming those here is refused. So is a flag of
      // `node --input-type=module --eval` in a thread: it is about that program alone.
      execArgv: process.execArgv.some((flag) => flag.startsWith("--input-type")) ? [] : undefined,
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    });
    worker.unref();
    worker.on("message", (answer: ThreadAnswer) => this.#settle(answer));
    worker.on("error", (error) => {
      if (worker === this.#worker) void this.end(reasonOf(error));
    });
    return worker;
  }

  #settle(answer: ThreadAnswer): void {
    const running = this.#running;
    if (running?.id !== answer.id) return;
    this.#running = undefined;
    clearTimeout(running.timeout);
    if (answer.kind === "value") running.resolve(answer.value);
    else running.reject(toError(answer));
    this.#idle = setTimeout(() => void this.end(undefined), idleMs).unref();
  }
}

/** Beside this file; a program that runs from its sources finds the compiled one. */
const program = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/decoding/thread.js" : "./thread.js",
  import.meta.url,
);

/** Only memory that nothing else lies in can be handed over; the rest is copied. */
function buffersOf(arrays: readonly Uint8Array[]): ArrayBuffer[] {
  return arrays.flatMap(({ buffer, byteLength }) =>
    buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [],
  );
}

function reasonOf(error: unknown): unknown {
  if (codeOf(error) !== "ERR_WORKER_OUT_OF_MEMORY") return error;
  return new ApiError(413, "it unfolds to more than fits in memory; send fewer data per request");
}

function toError(answer: Exclude<ThreadAnswer, { kind: "value" }>): Error {
  switch (answer.kind) {
    case "refused":
      return new ApiError(answer.status, answer.message);
    case "undecodable":
      return new UndecodableBody(answer.message, answer.place);
    case "damaged":
      return new DamagedError(answer.file, answer.problem);
    case "broken":
      return new Error(`it could not be decoded: ${answer.error}`);
  }
}
