import type { ApiFailure } from "../data/api.js";
import { visible } from "../text/visible.js";

/** A failure in one part of a screen. */
export function Failure({
  failure,
  what,
  retry,
}: {
  readonly failure: ApiFailure;
  /** The requested thing: "the runs". */
  readonly what: string;
  readonly retry?: () => void;
}) {
  return (
    <div class="notice error" role="alert">
      <span class="grow">
        <strong>{headline(failure.status, what)}</strong> {visible(failure.message)}
        {failure.code && <span class="muted"> ({visible(failure.code)})</span>}
      </span>
      {retry && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

function headline(status: number, what: string): string {
  if (status === 0) return `No answer for ${what}.`;
  if (status === 401) return "Log in to see this.";
  if (status === 403) return `Not allowed: ${what}.`;
  if (status === 404) return `There is no such thing: ${what}.`;
  if (status === 410) return `No longer kept: ${what}.`;
  return `Could not get ${what} (${status}).`;
}
