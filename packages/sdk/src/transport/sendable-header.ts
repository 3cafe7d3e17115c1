// What HTTP allows in a value: visible characters of Latin-1, spaces and tabs.
const unsendable = /[^\t\u0020-\u007e\u0080-\u00ff]/u;

/** What is wrong with a header's value, in words; undefined when it can be sent. */
export function problemOfHeaderValue(value: unknown): string | undefined {
  if (typeof value !== "string") return `must be text, got ${typeof value}`;
  const character = unsendable.exec(value)?.[0];
  if (character === undefined) return undefined;
  if (/[\r\n]$/.test(value)) return "ends with a line break; remove it";
  return `holds the character ${JSON.stringify(character)}, which cannot be sent in a header`;
}

/** True for a valid name of a header. */
export function isHeaderName(name: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name);
}
