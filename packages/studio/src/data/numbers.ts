import type { StudioNumber } from "tinker-ts/wire/studio";

/** A number from its form in JSON. */
export function numberOf(value: StudioNumber): number {
  return typeof value === "number" ? value : Number(value);
}

/** The same for optional values. */
export function numberOrNull(value: StudioNumber | null | undefined): number | null {
  return value === null || value === undefined ? null : numberOf(value);
}
