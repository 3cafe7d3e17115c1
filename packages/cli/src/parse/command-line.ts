import { flagOf, type OptionSpecs } from "./option-spec.js";

/** A command line that gives these options; those at their defaults are left out. */
export function commandLine(
  words: readonly string[],
  specs: OptionSpecs,
  values: Readonly<Record<string, unknown>>,
): string {
  const flags = Object.entries(specs).flatMap(([name, spec]) => {
    const value = values[name];
    if (value === undefined || value === false || value === spec.default) return [];
    if (spec.type === "flag") return [flagOf(name)];
    const list = Array.isArray(value) ? value : [value];
    return list.flatMap((entry) => [flagOf(name), String(entry)]);
  });
  return ["tinker-ts", ...words, ...flags].map(quote).join(" ");
}

function quote(word: string): string {
  return /^[\w./:@=+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
