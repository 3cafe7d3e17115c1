import { ArgumentError } from "./argument-error.js";

/** An option that may be left out; its type exists at compile time only. */
export interface Option<T> {
  readonly type?: T;
}

/** An option that every call needs. */
export interface NeededOption<T> extends Option<T> {
  readonly isNeeded: true;
}

const anyOption = {};

/** Declares an option that may be left out. */
export function option<T>(): Option<T> {
  return anyOption;
}

/** Declares an option that every call needs. */
export const needed = option as <T>() => NeededOption<T>;

/** Options by their names. The table has the sentence of each, and `checkOptions` takes the names from it. */
export type OptionsOf<Table> = {
  readonly [K in keyof Table as Table[K] extends NeededOption<unknown> ? K : never]: TypeOf<
    Table[K]
  >;
} & {
  readonly [K in keyof Table as Table[K] extends NeededOption<unknown> ? never : K]?:
    | TypeOf<Table[K]>
    | undefined;
};

type TypeOf<O> = O extends Option<infer T> ? T : never;

/**
 * Refuses options that no table has: a misspelt one would be ignored, and its default used instead. The
 * error has the spelling that was probably meant.
 */
export function checkOptions(given: unknown, tables: readonly object[], field = ""): void {
  if (given === undefined) return;
  const known = tables.flatMap(Object.keys);
  if (typeof given !== "object" || given === null) {
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
