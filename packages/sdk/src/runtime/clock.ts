/** Undoes a scheduled callback; harmless after it ran. */
export type CancelTimer = () => void;

/** How a callback is scheduled. */
export interface ScheduleOptions {
  /**
   * A caller waits for it, so the process must not end before; timeouts and background work
   * (heartbeats, telemetry) never keep it alive.
   * @default false
   */
  readonly keepsAlive?: boolean;
}

/** Time as the SDK sees it; tests put their own in its place. */
export interface Clock {
  /** Milliseconds on a clock that never jumps. */
  now(): number;
  /** Milliseconds since the epoch. */
  wallTime(): number;
  /** Runs `callback` once after `durationMs`. */
  schedule(durationMs: number, callback: () => void, options?: ScheduleOptions): CancelTimer;
}

/** Longest delay that `setTimeout` takes; anything above would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** The computer's own time. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  schedule(durationMs, callback, { keepsAlive = false } = {}) {
    const timer = setTimeout(callback, Math.min(durationMs, maxTimerMs));
    // Only Node's timers can hold a process; elsewhere they are numbers.
    if (!keepsAlive && typeof timer === "object") timer.unref();
    return () => clearTimeout(timer);
  },
};
