/**
 * The code of a system's or library's error. Whether it is an `Error` is not asked: where test runners give a program
 * a realm of its own, those of Node are none there.
 */
export function codeOf(error: unknown): string | undefined {
  const hasCode = typeof error === "object" && error !== null && "code" in error;
  return hasCode && typeof error.code === "string" ? error.code : undefined;
}
