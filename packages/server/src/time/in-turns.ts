import { setImmediate } from "node:timers/promises";

/** Longest time that work holds the event loop before others have a turn. */
const turnMs = 10;

/** Does work that pauses now and then, and lets others have a turn where it has taken long. */
export async function inTurns<T>(work: Generator<void, T, void>): Promise<T> {
  let turnEnd = performance.now() + turnMs;
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    if (performance.now() < turnEnd) continue;
    await setImmediate();
    turnEnd = performance.now() + turnMs;
  }
}

/** Does all of it now. */
export function atOnce<T>(work: Generator<void, T, void>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
