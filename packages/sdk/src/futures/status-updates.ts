import type { FutureStatus } from "./future-status.js";
import type { Operation } from "./operation.js";

/** The status of an operation now and after each change; ends with it. */
export async function* statusUpdates(
  operation: Operation,
): AsyncGenerator<FutureStatus, undefined> {
  const pending: FutureStatus[] = [operation.status];
  let wake: (() => void) | undefined;
  const stop = operation.onStatus((status) => {
    pending.push(status);
    wake?.();
  });
  try {
    for (;;) {
      const status = pending.shift();
      if (status) {
        yield status;
        if (status.state === "done" || status.state === "failed") return undefined;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    stop();
  }
}
