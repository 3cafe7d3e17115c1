import { ArgumentError } from "../../errors/argument-error.js";

/** Refuses names that no checkpoint path could hold. */
export function checkCheckpointName(name: string): void {
  if (typeof name !== "string" || name === "" || /[/\s?#]/.test(name)) {
    throw new ArgumentError(
      "name",
      `${JSON.stringify(name)} cannot name a checkpoint; use text without slashes and spaces`,
    );
  }
}

/** Refuses lifetimes that are no number of seconds. */
export function checkTtl(ttlSeconds: number | null | undefined): void {
  if (ttlSeconds === null || ttlSeconds === undefined) return;
  if (!Number.isSafeInteger(ttlSeconds) || ttlSeconds <= 0) {
    throw new ArgumentError("ttlSeconds", `must be a whole number above 0, got ${ttlSeconds}`);
  }
}

/** Refuses what is not the address of something saved. */
export function checkTinkerPath(path: string, field = "path"): void {
  if (typeof path !== "string" || !path.startsWith("tinker://")) {
    throw new ArgumentError(field, `${JSON.stringify(path)} must start with tinker://`);
  }
}
