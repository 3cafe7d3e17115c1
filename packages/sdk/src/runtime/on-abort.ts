type AbortCallback = (reason: unknown) => void;

/*
 * Thousands of calls may share one signal. A listener per call would make Node warn about a leak and
 * would cost a list walk each time one is removed, so every signal gets a single listener that serves
 * a set of callbacks and goes away with the last of them.
 */
const hubs = new WeakMap<AbortSignal, { callbacks: Set<AbortCallback>; listener: () => void }>();

const nothing = (): void => {};

/** Calls back once when `signal` aborts, at once if it has already; returns how to stop listening. */
export function onAbort(signal: AbortSignal | undefined, callback: AbortCallback): () => void {
  if (!signal) return nothing;
  if (signal.aborted) {
    callback(signal.reason);
    return nothing;
  }
  const hub = hubs.get(signal) ?? openHub(signal);
  // Wrapped, so that registering one function twice gives two registrations.
  const entry: AbortCallback = (reason) => callback(reason);
  hub.callbacks.add(entry);
  return () => {
    if (!hub.callbacks.delete(entry) || hub.callbacks.size > 0) return;
    signal.removeEventListener("abort", hub.listener);
    hubs.delete(signal);
  };
}

function openHub(signal: AbortSignal) {
  const callbacks = new Set<AbortCallback>();
  const listener = (): void => {
    hubs.delete(signal);
    const due = [...callbacks];
    callbacks.clear();
    for (const callback of due) callback(signal.reason);
  };
  const hub = { callbacks, listener };
  hubs.set(signal, hub);
  signal.addEventListener("abort", listener, { once: true });
  return hub;
}
