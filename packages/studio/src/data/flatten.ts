/**
 * A nested configuration as rows `a.b.c` to text; keys that begin with `_` are the logger's own. A map, because
 * `__proto__` may be a key like any other.
 */
export function flattened(config: unknown, isHiding = true): Map<string, string> {
  const rows = new Map<string, string>();
  const walk = (value: unknown, path: string): void => {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      const entries = Object.entries(value);
      if (entries.length === 0 && path) rows.set(path, "{}");
      for (const [key, inner] of entries) {
        if (isHiding && key.startsWith("_")) continue;
        walk(inner, path ? `${path}.${key}` : key);
      }
    } else if (path) {
      rows.set(path, typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined"));
    }
  };
  walk(config, "");
  return rows;
}
