/** Prints a figure beside its budget; at most one where `isLeast` is not given. */
export function budget(
  point: string,
  what: string,
  measured: number,
  allowed: number,
  unit: string,
  { isLeast = false }: { readonly isLeast?: boolean } = {},
): void {
  const isMet = isLeast ? measured >= allowed : measured <= allowed;
  const figure = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toFixed(1));
  const bound = isLeast ? "at least" : "at most";
  console.log(
    `${isMet ? "  " : "! "}${point.padEnd(4)}${what.padEnd(58)} ${figure(measured).padStart(8)} / ${bound} ${figure(allowed)} ${unit}`,
  );
}
