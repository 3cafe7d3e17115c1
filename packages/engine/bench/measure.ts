/**
 * Runs something for about `budgetMs`, at least once, and returns the shortest time, which other
 * processes disturb least.
 */
export async function bestMs(budgetMs: number, action: () => Promise<unknown>): Promise<number> {
  let [best, spent] = [Infinity, 0];
  do {
    const startMs = performance.now();
    await action();
    const ms = performance.now() - startMs;
    best = Math.min(best, ms);
    spent += ms;
  } while (spent < budgetMs);
  return best;
}

/** Runs something for about `budgetMs`, at least once, and returns the time that it takes on average. */
export async function meanMs(budgetMs: number, action: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  let [runs, spent] = [0, 0];
  do {
    await action();
    runs += 1;
    spent = performance.now() - startMs;
  } while (spent < budgetMs);
  return spent / runs;
}

/** Prints a heading. */
export function heading(text: string): void {
  console.log(`\n${text}`);
}

/** Prints a line of a label, a figure and, if there is one, a goal. */
export function line(label: string, figure: string, goal = ""): void {
  console.log(`  ${label.padEnd(44)} ${figure.padStart(22)}  ${goal}`);
}

export function percent(fraction: number): string {
  return `${(100 * fraction).toFixed(0)} %`;
}

export function gigaflops(operationsPerSecond: number): string {
  return `${(operationsPerSecond / 1e9).toFixed(0)} GFLOP/s`;
}

export function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MB`;
}
