/** Works through a list with so many at a time; the first failure ends it, when those under way have ended. */
export async function inParallel<T>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    while (next < items.length && !hasFailed) {
      try {
        await work(items[next++]!);
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
}
