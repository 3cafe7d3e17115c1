import os from "node:os";

/** How much later than others such a thread gets a core that all of them want; 19 is most. */
const niceness = 5;

let hasSteppedBack = false;

/**
 * Lets the event loop go first where this thread and it want the same core. Linux alone has priorities of threads;
 * elsewhere they belong to whole processes, and nothing happens.
 */
export function stepBack(): void {
  if (hasSteppedBack || process.platform !== "linux") return;
  hasSteppedBack = true;
  try {
    os.setPriority(0, Math.min(19, os.getPriority(0) + niceness));
  } catch {
    // A sandbox may forbid it. What is to be decoded is decoded all the same.
  }
}
