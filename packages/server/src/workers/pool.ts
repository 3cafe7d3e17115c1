import { setMaxListeners } from "node:events";
import { Worker } from "node:worker_threads";
import { ApiError, unavailable } from "../errors/api-error.js";
import { codeOf } from "../errors/code-of.js";
import { DamagedError } from "../errors/damaged-error.js";
import type { ServerScheduler } from "../scheduler.js";
import { InvalidBody } from "./invalid-body.js";
import type { WorkerAnswer, WorkerRequest, WorkerTask } from "./messages.js";

/** Memory of a worker; a task that needs more is refused. */
const heapMegabytes = 3072;
/** A worker without a task for this long ends, and its memory with it. */
const idleMs = 20_000;
const defaultMaxMs = 30_000;
/** What a millisecond costs, as tokens of the other resources. */
const costPerMs = 64;

/**
 * Workers, so that the event loop stays free.
 *
 * - An owner has two of three at most, one where others have work too, and starts a worker only when there is
 *   something to do. When all are taken, owners take turns by the time that their tasks took.
 * - A task that takes too much memory or time costs its owner the request and the worker its life.
 */
export class WorkerPool {
  readonly #slots: readonly Slot[];
  readonly #scheduler: ServerScheduler;
  readonly #closing = new AbortController();

  /** The scheduler has the resource "workers", of as many turns. */
  constructor(scheduler: ServerScheduler, size: number) {
    this.#scheduler = scheduler;
    this.#slots = Array.from({ length: size }, () => new Slot());
    // Everything that waits listens to it.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Runs a task for an owner; the memory of `transfer` is used up. */
  async run(
    owner: string,
    task: WorkerTask,
    {
      transfer = [],
      maxMs = defaultMaxMs,
    }: { transfer?: readonly Uint8Array[]; maxMs?: number } = {},
  ): Promise<unknown> {
    const request = { resource: "workers", owner, group: "" } as const;
    const turn = await this.#scheduler.turn(request, this.#closing.signal);
    const startedAt = performance.now();
    try {
      this.#closing.signal.throwIfAborted();
      return await this.#slots.find(({ isFree }) => isFree)!.run(task, transfer, maxMs);
    } finally {
      turn.end((performance.now() - startedAt) * costPerMs);
    }
  }

  /** Ends the workers and refuses what waits for them. */
  async close(): Promise<void> {
    const reason = unavailable("the server is shutting down");
    this.#closing.abort(reason);
    await Promise.all(this.#slots.map((slot) => slot.end(reason)));
  }
}

interface Job {
  readonly id: number;
  readonly timeout: NodeJS.Timeout;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A worker that runs one task at a time; after one that failed hard it is another one. */
class Slot {
  #worker: Worker | undefined;
  #job: Job | undefined;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 0;

  get isFree(): boolean {
    return this.#job === undefined;
  }

  run(task: WorkerTask, transfer: readonly Uint8Array[], maxMs: number): Promise<unknown> {
    clearTimeout(this.#idle);
    const request: WorkerRequest = { id: this.#nextId++, task };
    const tooLong = new ApiError(413, "it takes too long to read; send fewer data per request");
    return new Promise((resolve, reject) => {
      const worker = (this.#worker ??= this.#open());
      worker.postMessage(request, buffersOf(transfer));
      const timeout = setTimeout(() => void this.end(tooLong), maxMs).unref();
      this.#job = { id: request.id, timeout, resolve, reject };
    });
  }

  /** Ends the worker; its task fails with the reason. */
  async end(reason: unknown): Promise<void> {
    clearTimeout(this.#idle);
    const [job, worker] = [this.#job, this.#worker];
    this.#job = undefined;
    this.#worker = undefined;
    clearTimeout(job?.timeout);
    job?.reject(reason);
    await worker?.terminate();
  }

  #open(): Worker {
    const worker = new Worker(program, {
      name: "tinker-ts worker",
      // Flags of the process hold for its threads, V8's too, but naming those here is refused. So is a flag of
      // `node --input-type=module --eval` in a thread: it is about that program alone.
      execArgv: process.execArgv.some((flag) => flag.startsWith("--input-type")) ? [] : undefined,
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    });
    worker.unref();
    worker.on("message", (answer: WorkerAnswer) => this.#settle(answer));
    worker.on("error", (error) => {
      if (worker === this.#worker) void this.end(reasonOf(error));
    });
    return worker;
  }

  #settle(answer: WorkerAnswer): void {
    const job = this.#job;
    if (job?.id !== answer.id) return;
    this.#job = undefined;
    clearTimeout(job.timeout);
    if (answer.kind === "value") job.resolve(answer.value);
    else job.reject(toError(answer));
    this.#idle = setTimeout(() => void this.end(undefined), idleMs).unref();
  }
}

/** Beside this file; a program that runs from its sources finds the compiled one. */
const program = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/workers/worker.js" : "./worker.js",
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
  const problem = "the decoded body does not fit in memory; send fewer data per request";
  return new ApiError(413, problem);
}

function toError(answer: Exclude<WorkerAnswer, { kind: "value" }>): Error {
  switch (answer.kind) {
    case "refused":
      return new ApiError(answer.status, answer.message);
    case "invalid":
      return new InvalidBody(answer.message, answer.place);
    case "damaged":
      return new DamagedError(answer.file, answer.problem);
    case "broken":
      return new Error(`a worker failed: ${answer.error}`);
  }
}
