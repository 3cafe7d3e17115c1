import type { StudioNumber } from "tinker-ts/wire/studio";

/** A number from what JSON could say of it. */
export function numberOf(value: StudioNumber): number {
  return typeof value === "number" ? value : Number(value);
}

/** The same where there may be none. */
export function numberOrNull(value: StudioNumber | null | undefined): number | null {
  return value === null || value === undefined ? null : numberOf(value);
}
