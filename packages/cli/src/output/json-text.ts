/** JSON as the command line prints it: ASCII only, so that every terminal and pipe carries it. */
export function jsonText(value: unknown, indent: number = 2): string {
  return JSON.stringify(value, null, indent).replace(
    /[\u007F-\uFFFF]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
