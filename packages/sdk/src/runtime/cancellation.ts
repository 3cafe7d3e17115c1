import type { Clock } from "./clock.js";

/** Is called with the reason when something is cancelled. */
export interface AbortListener {
  onAbort(reason: unknown): void;
}

/** The state of something that can be cancelled; an `AbortSignal` is one. */
export interface Cancellation {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
}

/**
 * Aborts everything that listens to it. Does what an `AbortController` does, for use inside: every
 * call has one and every wait listens to it, which with event targets costs more than the request. It
 * may itself listen to another one.
 */
export class Canceller implements Cancellation, AbortListener {
  // Most calls wait for one thing at a time, and a set takes more memory than the rest of this.
  #only: AbortListener | undefined;
  #others: Set<AbortListener> | undefined;
  aborted = false;
  reason: unknown = undefined;

  get hasListener(): boolean {
    return this.#only !== undefined || (this.#others?.size ?? 0) > 0;
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const only = this.#only;
    const others = this.#others;
    this.#only = undefined;
    this.#others = undefined;
    only?.onAbort(reason);
    others?.forEach((listener) => listener.onAbort(reason));
  }

  onAbort(reason: unknown): void {
    this.abort(reason);
  }

  add(listener: AbortListener): void {
    if (!this.#only && !this.#others) {
      this.#only = listener;
    } else {
      this.#others ??= new Set();
      this.#others.add(listener);
    }
  }

  remove(listener: AbortListener): void {
    if (this.#only === listener) this.#only = undefined;
    else this.#others?.delete(listener);
  }
}

/*
 * Thousands of calls may share one signal of the user. A listener per call would make Node warn about
 * a leak, so every signal gets a single listener, which serves a canceller and goes away with the last
 * of those that listen to it.
 */
interface Hub {
  readonly canceller: Canceller;
  readonly listener: () => void;
}

const hubs = new WeakMap<AbortSignal, Hub>();

/**
 * Calls `listener` when something is cancelled, at once if it already is. Takes the listener itself
 * and not a function: a call has many waits, and closures take memory.
 */
export function listen(source: Cancellation | undefined, listener: AbortListener): void {
  if (!source) return;
  if (source.aborted) listener.onAbort(source.reason);
  else if (source instanceof Canceller) source.add(listener);
  else hubOf(source as AbortSignal).canceller.add(listener);
}

/** Ends what `listen` began; harmless when that is over. */
export function stopListening(source: Cancellation | undefined, listener: AbortListener): void {
  if (!source) return;
  if (source instanceof Canceller) return source.remove(listener);
  const signal = source as AbortSignal;
  const hub = hubs.get(signal);
  if (!hub) return;
  hub.canceller.remove(listener);
  if (hub.canceller.hasListener) return;
  signal.removeEventListener("abort", hub.listener);
  hubs.delete(signal);
}

/** Calls back once on an abort, at once after one; returns a function that stops it. */
export function onAbort(
  source: Cancellation | undefined,
  callback: (reason: unknown) => void,
): () => void {
  const listener: AbortListener = { onAbort: callback };
  listen(source, listener);
  return () => stopListening(source, listener);
}

function hubOf(signal: AbortSignal): Hub {
  const known = hubs.get(signal);
  if (known) return known;
  const canceller = new Canceller();
  const listener = (): void => {
    hubs.delete(signal);
    canceller.abort(signal.reason);
  };
  const hub = { canceller, listener };
  hubs.set(signal, hub);
  signal.addEventListener("abort", listener, { once: true });
  return hub;
}

/** Waits for `promise`, but no longer than until `signal` aborts; the promise itself goes on. */
export function abortable<T>(promise: PromiseLike<T>, signal?: Cancellation): Promise<T> {
  if (!signal) return Promise.resolve(promise);
  return new Promise((resolve, reject) => {
    const stop = onAbort(signal, (reason) => reject(reason));
    promise.then(
      (value) => {
        stop();
        resolve(value);
      },
      (error: unknown) => {
        stop();
        reject(error);
      },
    );
  });
}

/** Resolves after `durationMs`; rejects with the reason of an abort. */
export function sleep(
  clock: Clock,
  durationMs: number,
  signal?: Cancellation,
  isBackground = false,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancelTimer = clock.schedule(
      durationMs,
      () => {
        stop();
        resolve();
      },
      { keepsAlive: !isBackground },
    );
    const stop = onAbort(signal, (reason) => {
      cancelTimer();
      reject(reason);
    });
  });
}
