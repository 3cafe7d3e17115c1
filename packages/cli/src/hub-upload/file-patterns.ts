/** True for a path that matches one of the patterns: `*` matches any text, `?` one character. */
export function matchesAny(file: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => toRegExp(pattern).test(file));
}

function toRegExp(pattern: string): RegExp {
  // A folder means everything in it.
  const whole = pattern.endsWith("/") ? `${pattern}*` : pattern;
  const source = whole
    .replace(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${source}$`, "s");
}
