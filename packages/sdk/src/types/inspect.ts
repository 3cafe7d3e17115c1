/** The name under which Node, Bun and Deno look for how a value wants to be printed. */
export const inspectSymbol: unique symbol = Symbol.for("nodejs.util.inspect.custom");

const shownValues = 6;

/** The first values of a list, for printing. */
export function firstValues(values: ArrayLike<number | bigint>): string {
  const shown = Array.from({ length: Math.min(values.length, shownValues) }, (_, index) => {
    const value = values[index]!;
    return typeof value === "number" && !Number.isInteger(value)
      ? String(Number(value.toPrecision(4)))
      : String(value);
  });
  return values.length > shownValues ? `${shown.join(", ")}, …` : shown.join(", ");
}

/** An object of named facts as it is printed: `Name { a: 1, b: "x" }`. */
export function describeFacts(name: string, facts: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(facts)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return entries.length === 0 ? `${name} {}` : `${name} { ${entries.join(", ")} }`;
}
