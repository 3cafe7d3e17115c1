import { ArgumentError } from "tinker-ts";

/** Splits a list into consecutive parts; their sizes differ by at most one. */
export function splitList<T>(items: readonly T[], parts: number): T[][] {
  if (!Number.isSafeInteger(parts) || parts < 1 || parts > items.length) {
    throw new ArgumentError("parts", `must be between 1 and ${items.length}, not ${parts}`);
  }
  const edge = (part: number): number => Math.floor((part * items.length) / parts);
  return Array.from({ length: parts }, (_, part) => items.slice(edge(part), edge(part + 1)));
}
