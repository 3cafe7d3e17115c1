/** The value, or a rejection as soon as the signal is aborted, even when the work ignores the signal. */
export async function untilAborted<T>(signal: AbortSignal, work: T | PromiseLike<T>): Promise<T> {
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort!);
  }
}
