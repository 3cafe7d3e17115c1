import { onAbort } from "./on-abort.js";

/** Undoes a scheduled callback; harmless after it ran. */
export type CancelTimer = () => void;

/**
 * Time as the SDK sees it; tests put their own in its place.
 *
 * - `sleep` is part of an operation that somebody waits for, so it keeps the process alive unless it
 *   is said to be in the background.
 * - `schedule` serves timeouts and background work (heartbeats, telemetry), so it never does.
 */
export interface Clock {
  /** Milliseconds on a clock that never jumps. */
  now(): number;
  /** Milliseconds since the epoch. */
  wallTime(): number;
  /** Resolves after `durationMs`; rejects with the signal's reason when aborted. */
  sleep(durationMs: number, signal?: AbortSignal, isBackground?: boolean): Promise<void>;
  /** Runs `callback` once after `durationMs`. */
  schedule(durationMs: number, callback: () => void): CancelTimer;
}

/** Longest delay that `setTimeout` takes; anything above would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** The computer's own time. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  sleep(durationMs, signal, isBackground = false) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(finish, Math.min(durationMs, maxTimerMs));
      if (isBackground) timer.unref();
      const stopListening = onAbort(signal, (reason) => {
        clearTimeout(timer);
        reject(reason);
      });
      function finish(): void {
        stopListening();
        resolve();
      }
    });
  },
  schedule(durationMs, callback) {
    const timer = setTimeout(callback, Math.min(durationMs, maxTimerMs));
    timer.unref();
    return () => clearTimeout(timer);
  },
};
