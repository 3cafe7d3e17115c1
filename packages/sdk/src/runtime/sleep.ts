import { onAbort, type Cancellation } from "./cancellation.js";
import type { Clock } from "./clock.js";

/** Resolves after `durationMs`; rejects with the reason when it is given up. */
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
        stopListening();
        resolve();
      },
      { keepsAlive: !isBackground },
    );
    const stopListening = onAbort(signal, (reason) => {
      cancelTimer();
      reject(reason);
    });
  });
}
