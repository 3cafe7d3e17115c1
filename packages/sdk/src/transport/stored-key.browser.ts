/** A page has no home folder to keep a key in. */
export function readStoredKey(): undefined {
  return undefined;
}
