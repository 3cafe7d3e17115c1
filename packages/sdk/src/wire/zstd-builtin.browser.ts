/** Browsers have no zstd of their own for programs. Takes the place of zstd-builtin.ts. */
export function builtInZstd(): undefined {
  return undefined;
}
