/** JSON that commands print has the names of the API. */
export function snakeCase(value: object): object {
  const snake = (name: string): string => name.replace(/[A-Z]/g, (a) => `_${a.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [snake(name), entry]));
}

/** A text as one line that fits on a screen. */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}

/** A number as people write it. */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
