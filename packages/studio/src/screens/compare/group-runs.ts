/**
 * The group of every run: the values of some keys of its configuration. `all-but-seed` means every key that does not
 * concern a seed or the location of the run.
 */
export function groupNames(
  configs: ReadonlyMap<string, ReadonlyMap<string, string>>,
  keys: readonly string[],
): Map<string, string> {
  const names = new Map<string, string>();
  if (keys.length === 0) return names;
  const all = new Set([...configs.values()].flatMap((config) => [...config.keys()]));
  const used = keys.includes("all-but-seed")
    ? [...all]
        .filter((key) => !/(^|[._])seed$|(log|output)_(path|dir)|folder|(^|\.)name$/i.test(key))
        .toSorted()
    : keys;
  const differing = used.filter(
    (key) => new Set([...configs.values()].map((config) => config.get(key))).size > 1,
  );
  for (const [id, config] of configs) {
    const parts = differing.map((key) => `${key.split(".").at(-1)} ${config.get(key) ?? "–"}`);
    names.set(id, parts.join(", ") || "all");
  }
  return names;
}
