/** Time as the server sees it; tests drive it by hand. */
export interface Clock {
  /** Milliseconds since the epoch; jumps when the machine's clock is set. */
  now(): number;
  /** Milliseconds since some moment; never jumps. */
  elapsed(): number;
  /** Calls back once after `delayMs`; never keeps the process alive. Returns the way to cancel. */
  after(delayMs: number, callback: () => void): () => void;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
