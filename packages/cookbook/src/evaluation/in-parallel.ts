/** Processes a list with limited concurrency; after a failure it waits for the work in flight and rejects. */
export async function inParallel<T, R>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = Array.from({ length: items.length });
  let next = 0;
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    while (next < items.length && !hasFailed) {
      try {
        const place = next++;
        results[place] = await work(items[place]!);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  const workers = Array.from({ length: Math.min(concurrency, items.length) }, worker);
  const ended = await Promise.allSettled(workers);
  const failed = ended.find((end) => end.status === "rejected");
  if (failed) throw failed.reason;
  return results;
}

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
