import { Worker } from "node:worker_threads";
import { ModelInput } from "tinker-ts/wire";
import { ApiError, unavailable } from "../errors/api-error.js";
import { FairQueue } from "../queue/fair-queue.js";
import type { BodyForm } from "./body-form.js";
import { decodeBody } from "./decode-body.js";
import type { DecodeAnswer, DecodeOrder } from "./messages.js";
import { UndecodableBody } from "./undecodable-body.js";

/** Bodies up to this size are decoded at once: handing them over would take longer. */
const smallBytes = 64 * 1024;

/** Memory of the thread; a body that unfolds to more is refused. */
const heapMegabytes = 3072;

/** Longest work on one body. */
const maxDecodeMs = 60_000;

/** A thread without work for this long ends, and its memory with it. */
const idleMs = 20_000;

interface Job {
  readonly parts: readonly Uint8Array[];
  readonly form: BodyForm;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Unpacks and decodes bodies.
 *
 * - Small ones at once, all others in a thread of their own, so that the event loop stays free.
 * - The thread works on one body at a time, and owners take turns.
 * - A body that takes too much memory or time costs its sender the request and the thread its life; the
 *   next body gets a new thread.
 */
export class BodyDecoder {
  readonly #waiting = new FairQueue<Job>();
  #worker: Worker | undefined;
  #running:
    | { readonly id: number; readonly job: Job; readonly timeout: NodeJS.Timeout }
    | undefined;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 0;
  #isClosed = false;

  /** Decodes a body that has arrived in parts; those are used up. */
  decode(parts: readonly Uint8Array[], form: BodyForm, owner: string): Promise<unknown> {
    const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0);
    if (sizeBytes <= smallBytes && !form.isCompressed) {
      return decodeBody(parts.length === 1 ? parts[0]! : Buffer.concat(parts), form);
    }
    if (this.#isClosed) return Promise.reject(unavailable("the server is shutting down"));
    return new Promise((resolve, reject) => {
      this.#waiting.add(owner, "", { parts, form, resolve, reject });
      this.#startNext();
    });
  }

  /** Ends the thread and refuses what waits for it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (let job = this.#waiting.take(); job; job = this.#waiting.take()) {
      job.reject(unavailable("the server is shutting down"));
    }
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#end(unavailable("the server is shutting down"));
    await worker?.terminate();
  }

  #startNext(): void {
    if (this.#running) return;
    clearTimeout(this.#idle);
    const job = this.#waiting.take();
    if (!job) {
      this.#idle = setTimeout(() => this.#end(undefined), idleMs).unref();
      return;
    }
    const id = this.#nextId++;
    const tooLong = new ApiError(
      413,
      "the body takes too long to read; send fewer data per request",
    );
    const timeout = setTimeout(() => this.#end(tooLong), maxDecodeMs).unref();
    this.#running = { id, job, timeout };
    const order: DecodeOrder = { id, parts: job.parts, form: job.form };
    const worker = (this.#worker ??= this.#start());
    worker.postMessage(
      order,
      job.parts.map(({ buffer }) => buffer as ArrayBuffer),
    );
  }

  #start(): Worker {
    const worker = new Worker(threadProgram, {
      name: "tinker-ts bodies",
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    });
    worker.unref();
    worker.on("message", (answer: DecodeAnswer) => this.#settle(answer));
    worker.on("error", (error) => {
      if (worker === this.#worker) this.#end(deathReason(error));
    });
    return worker;
  }

  #settle(answer: DecodeAnswer): void {
    const running = this.#running;
    if (running?.id !== answer.id) return;
    this.#running = undefined;
    clearTimeout(running.timeout);
    if (answer.kind === "value") running.job.resolve(answer.value);
    else if (answer.kind === "sample") running.job.resolve(revivedSample(answer));
    else running.job.reject(toError(answer));
    this.#startNext();
  }

  /** Ends the thread; what it works on fails with the reason. */
  #end(reason: unknown): void {
    const running = this.#running;
    const worker = this.#worker;
    this.#running = undefined;
    this.#worker = undefined;
    void worker?.terminate();
    if (!running) return;
    clearTimeout(running.timeout);
    running.job.reject(reason);
    this.#startNext();
  }
}

/** Beside this file; a program that runs from its sources finds the compiled one. */
const threadProgram = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/decoding/thread.js" : "./thread.js",
  import.meta.url,
);

function deathReason(error: unknown): unknown {
  const isMemory =
    error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
  if (!isMemory) return error;
  return new ApiError(
    413,
    "the body unfolds to more than fits in memory; send fewer data per request",
  );
}

function revivedSample({ value, chunks }: DecodeAnswer & { kind: "sample" }): unknown {
  return { ...value, prompt: new ModelInput({ chunks: chunks as [] }) };
}

function toError(answer: Exclude<DecodeAnswer, { kind: "value" | "sample" }>): Error {
  switch (answer.kind) {
    case "refused":
      return new ApiError(answer.status, answer.message);
    case "undecodable":
      return new UndecodableBody(answer.message, answer.place);
    case "broken":
      return new Error(`a body could not be decoded: ${answer.error}`);
  }
}
