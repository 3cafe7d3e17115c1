import { defer, type Deferred } from "../runtime/deferred.js";

/** Bytes that may wait to be read before the sender is asked to hold back. */
const highWaterBytes = 1_048_576;

/** What a queue does to the connection that fills it. */
export interface PartSource {
  /** Nothing should be sent for a while. */
  pause(): void;
  resume(): void;
  /** The reader has left. */
  cancel(): void;
}

/** The parts of a body between a connection and its reader. */
export class PartQueue implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #source: PartSource;
  readonly #parts: Uint8Array[] = [];
  #waiting: Deferred<void> | undefined;
  #queuedBytes = 0;
  #isPaused = false;
  #hasEnded = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(source: PartSource) {
    this.#source = source;
  }

  /** True while the sender is asked to hold back, so that its silence means nothing. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  push(part: Uint8Array): void {
    this.#parts.push(part);
    this.#queuedBytes += part.byteLength;
    if (this.#queuedBytes > highWaterBytes && !this.#isPaused) {
      this.#isPaused = true;
      this.#source.pause();
    }
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /** Ends with an error at once, whatever is there still to be read. */
  abort(error: unknown): void {
    this.#parts.length = 0;
    this.fail(error);
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wake();
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (;;) {
      const part = this.#parts.shift();
      if (part) {
        this.#queuedBytes -= part.byteLength;
        if (this.#isPaused && this.#queuedBytes <= highWaterBytes / 2) {
          this.#isPaused = false;
          this.#source.resume();
        }
        return { done: false, value: part };
      }
      if (this.#failure) throw this.#failure.error;
      if (this.#hasEnded) return { done: true, value: undefined };
      this.#waiting = defer();
      await this.#waiting.promise;
    }
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#parts.length = 0;
    if (!this.#hasEnded && !this.#failure) this.#source.cancel();
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
