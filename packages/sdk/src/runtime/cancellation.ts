/** Hears why something was given up. */
export type AbortCallback = (reason: unknown) => void;

/** Tells whether something was given up; an `AbortSignal` is one. */
export interface Cancellation {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
}

const nothing = (): void => {};

/**
 * Gives up everything that listens to it. Does what an `AbortController` does, for use inside: every
 * call has one and every wait listens to it, which with event targets costs more than the request.
 */
export class Canceller implements Cancellation {
  // Most calls wait for one thing at a time, and a set takes more memory than the rest of this.
  #onlyCallback: AbortCallback | undefined;
  #callbacks: Set<AbortCallback> | undefined;
  #isAborted = false;
  #reason: unknown;

  get aborted(): boolean {
    return this.#isAborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason;
  }

  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    const only = this.#onlyCallback;
    const others = this.#callbacks;
    this.#onlyCallback = undefined;
    this.#callbacks = undefined;
    only?.(reason);
    others?.forEach((callback) => callback(reason));
  }

  add(callback: AbortCallback): void {
    if (!this.#onlyCallback && !this.#callbacks) {
      this.#onlyCallback = callback;
    } else {
      this.#callbacks ??= new Set();
      this.#callbacks.add(callback);
    }
  }

  remove(callback: AbortCallback): void {
    if (this.#onlyCallback === callback) this.#onlyCallback = undefined;
    else this.#callbacks?.delete(callback);
  }
}

/*
 * Thousands of calls may share one signal of the user. A listener per call would make Node warn about
 * a leak, so every signal gets a single listener, which serves a canceller and goes away with the last
 * of its callbacks.
 */
interface Hub {
  readonly canceller: Canceller;
  readonly listener: () => void;
  size: number;
}

const hubs = new WeakMap<AbortSignal, Hub>();

/** Calls back once when something is given up, at once if it already is; returns how to stop. */
export function onAbort(source: Cancellation | undefined, callback: AbortCallback): () => void {
  if (!source) return nothing;
  if (source.aborted) {
    callback(source.reason);
    return nothing;
  }
  // Wrapped, so that listening twice with one function is listening twice.
  const entry: AbortCallback = (reason) => callback(reason);
  if (source instanceof Canceller) {
    source.add(entry);
    return () => source.remove(entry);
  }
  return listenToSignal(source as AbortSignal, entry);
}

function listenToSignal(signal: AbortSignal, entry: AbortCallback): () => void {
  const hub = hubs.get(signal) ?? openHub(signal);
  hub.canceller.add(entry);
  hub.size++;
  let isListening = true;
  return () => {
    if (!isListening) return;
    isListening = false;
    hub.canceller.remove(entry);
    hub.size--;
    if (hub.size > 0) return;
    signal.removeEventListener("abort", hub.listener);
    hubs.delete(signal);
  };
}

function openHub(signal: AbortSignal): Hub {
  const canceller = new Canceller();
  const listener = (): void => {
    hubs.delete(signal);
    canceller.abort(signal.reason);
  };
  const hub = { canceller, listener, size: 0 };
  hubs.set(signal, hub);
  signal.addEventListener("abort", listener, { once: true });
  return hub;
}
