/** How long something takes. */
export async function timed(action: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await action();
  return performance.now() - startedAt;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** A short time among many, which other processes disturb least. */
export function undisturbed(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 10)] ?? Number.NaN;
}

/** Prints a line: a label, a figure, and how much of its limit it takes up. */
export function line(label: string, figure: string, share?: { of: number; is: number }): void {
  const percent = share ? `${((share.is / share.of) * 100).toFixed(0)} % of the limit` : "";
  console.log(`${label.padEnd(32)}${figure.padEnd(52)}${percent}`.trimEnd());
}

/** Prints a figure of the studio beside its budget; one that is above it is marked. */
export function budget(
  point: string,
  what: string,
  measured: number,
  most: number,
  unit: string,
): void {
  const figure = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toFixed(1));
  const sign = measured <= most ? "  " : "! ";
  const figures = `${figure(measured).padStart(8)} / at most ${figure(most)} ${unit}`;
  console.log(`${sign}${point.padEnd(4)}${what.padEnd(58)} ${figures}`);
}
