import { ArgumentError } from "./argument-error.js";

/**
 * Refuses options that nobody reads: a misspelt one would be ignored, and its default used instead. Names
 * the spelling that was probably meant.
 */
export function checkOptions(given: unknown, known: readonly string[], field = ""): void {
  if (typeof given !== "object" || given === null) {
    if (given === undefined) return;
    throw new ArgumentError(field || "options", `must be an object with ${known.join(", ")}`);
  }
  for (const name in given) {
    if (known.includes(name) || !Object.hasOwn(given, name)) continue;
    if ((given as Readonly<Record<string, unknown>>)[name] === undefined) continue;
    const meant = closestTo(name, known);
    throw new ArgumentError(
      field ? `${field}.${name}` : name,
      meant === undefined
        ? `unknown option; there are ${known.join(", ")}`
        : `unknown option; did you mean ${meant}?`,
    );
  }
}

/** The known name that differs in case and underscores only, else the one with the fewest typing errors. */
function closestTo(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string): string => text.replaceAll(/[_-]/g, "").toLowerCase();
  const wanted = plain(name);
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(wanted, plain(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance);
  const [best] = ranked;
  const isClose = best !== undefined && best.distance <= Math.ceil(wanted.length / 3);
  return isClose ? best.candidate : undefined;
}

function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (isSame ? 0 : 1)));
    }
    row = next;
  }
  return row[to.length]!;
}
