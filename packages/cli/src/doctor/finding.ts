/** What one check found. */
export interface Finding {
  readonly check: string;
  readonly state: "ok" | "warning" | "broken" | "skipped";
  readonly finding: string;
  /** What to do about it; null when nothing is to be done. */
  readonly remedy: string | null;
}

/** All is well. */
export function ok(check: string, finding: string): Finding {
  return { check, state: "ok", finding, remedy: null };
}

/** Something will not work. */
export function broken(check: string, finding: string, remedy: string): Finding {
  return { check, state: "broken", finding, remedy };
}
