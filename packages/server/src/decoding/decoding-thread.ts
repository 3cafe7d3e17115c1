import { Worker } from "node:worker_threads";
import { ApiError, unavailable } from "../errors/api-error.js";
import { FairQueue } from "../queue/fair-queue.js";
import type { ThreadAnswer, ThreadOrder, ThreadWork } from "./messages.js";
import { UndecodableBody } from "./undecodable-body.js";

/** Memory of the thread; what unfolds to more is refused. */
const heapMegabytes = 3072;

/** Longest work on one thing. */
const maxWorkMs = 30_000;

/** A thread without work for this long ends, and its memory with it. */
const idleMs = 20_000;

interface Job {
  readonly work: ThreadWork;
  readonly transfer: readonly Uint8Array[];
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A thread that decodes, so that the event loop stays free.
 *
 * - It does one thing at a time, and owners take turns.
 * - What takes too much memory or time costs its sender the request and the thread its life; the next one
 *   gets a new thread.
 */
export class DecodingThread {
  readonly #waiting = new FairQueue<Job>();
  #worker: Worker | undefined;
  #running: { id: number; job: Job; timeout: NodeJS.Timeout } | undefined;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 0;
  #isClosed = false;

  /** Does work for an owner; the memory of `transfer` is used up. */
  run(owner: string, work: ThreadWork, transfer: readonly Uint8Array[]): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(stopping());
    return new Promise((resolve, reject) => {
      this.#waiting.add(owner, "", { work, transfer, resolve, reject });
      this.#startNext();
    });
  }

  /** Ends the thread and refuses what waits for it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (let job = this.#waiting.take(); job; job = this.#waiting.take()) job.reject(stopping());
    await this.#end(stopping());
    clearTimeout(this.#idle);
  }

  #startNext(): void {
    if (this.#running) return;
    clearTimeout(this.#idle);
    const job = this.#waiting.take();
    if (!job) {
      this.#idle = setTimeout(() => void this.#end(undefined), idleMs).unref();
      return;
    }
    const id = this.#nextId++;
    const tooLong = new ApiError(413, "it takes too long to read; send fewer data per request");
    const timeout = setTimeout(() => void this.#end(tooLong), maxWorkMs).unref();
    this.#running = { id, job, timeout };
    const worker = (this.#worker ??= this.#start());
    const order: ThreadOrder = { id, work: job.work };
    worker.postMessage(order, buffersOf(job.transfer));
  }

  #start(): Worker {
    const worker = new Worker(program, {
      name: "tinker-ts decoding",
      execArgv: process.execArgv.filter((flag) => !flag.startsWith("--input-type")),
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    });
    worker.unref();
    worker.on("message", (answer: ThreadAnswer) => this.#settle(answer));
    worker.on("error", (error) => {
      if (worker === this.#worker) void this.#end(reasonOf(error));
    });
    return worker;
  }

  #settle(answer: ThreadAnswer): void {
    const running = this.#running;
    if (running?.id !== answer.id) return;
    this.#running = undefined;
    clearTimeout(running.timeout);
    if (answer.kind === "value") running.job.resolve(answer.value);
    else running.job.reject(toError(answer));
    this.#startNext();
  }

  /** Ends the thread; what it works on fails with the reason. */
  async #end(reason: unknown): Promise<void> {
    const running = this.#running;
    const worker = this.#worker;
    this.#running = undefined;
    this.#worker = undefined;
    if (running) {
      clearTimeout(running.timeout);
      running.job.reject(reason);
    }
    await worker?.terminate();
    if (running) this.#startNext();
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

function stopping(): ApiError {
  return unavailable("the server is shutting down");
}

function reasonOf(error: unknown): unknown {
  const isMemory =
    error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
  if (!isMemory) return error;
  return new ApiError(413, "it unfolds to more than fits in memory; send fewer data per request");
}

function toError(answer: Exclude<ThreadAnswer, { kind: "value" }>): Error {
  switch (answer.kind) {
    case "refused":
      return new ApiError(answer.status, answer.message);
    case "undecodable":
      return new UndecodableBody(answer.message, answer.place);
    case "broken":
      return new Error(`it could not be decoded: ${answer.error}`);
  }
}
