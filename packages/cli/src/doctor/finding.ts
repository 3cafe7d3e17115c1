/** The result of one check. */
export interface Finding {
  readonly check: string;
  readonly state: "ok" | "warning" | "broken" | "skipped";
  readonly finding: string;
  /** A suggested fix; null if none is needed. */
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
