/** Runs something a few times and returns the shortest time, which other processes disturb least. */
export async function bestMs(times: number, action: () => Promise<unknown>): Promise<number> {
  let best = Infinity;
  for (let i = 0; i < times; i++) {
    const startMs = performance.now();
    await action();
    best = Math.min(best, performance.now() - startMs);
  }
  return best;
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

export function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MB`;
}
