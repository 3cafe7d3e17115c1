import { readdir } from "node:fs/promises";
import type { HubSettings } from "./settings.js";

/** Models of the cache whose names are most like a name, best first; for messages about names that do not exist. */
export async function nearestCached(settings: HubSettings, name: string): Promise<string[]> {
  const entries = await readdir(settings.cacheFolder).catch(() => []);
  const ids = entries
    .filter((entry) => entry.startsWith("models--"))
    .map((entry) => entry.slice("models--".length).replaceAll("--", "/"));
  return nearestNames(name, ids);
}

/** Names that share most of their letters with a name, in order; at most three. */
export function nearestNames(name: string, known: readonly string[]): string[] {
  return known
    .map((candidate) => ({ candidate, likeness: likeness(name, candidate) }))
    .filter((entry) => entry.likeness > 0.5)
    .toSorted((a, b) => b.likeness - a.likeness)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** The share of pairs of neighbouring letters that two words have in common. */
function likeness(a: string, b: string): number {
  const [first, second] = [pairs(a), pairs(b)];
  const common = [...first].filter((pair) => second.has(pair)).length;
  return (2 * common) / Math.max(1, first.size + second.size);
}

function pairs(word: string): Set<string> {
  const lower = word.toLowerCase();
  return new Set(Array.from(lower, (letter, index) => letter + (lower[index + 1] ?? "")));
}
