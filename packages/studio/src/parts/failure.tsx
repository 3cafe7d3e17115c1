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
  if (status === 401) return "Log in to view this page.";
  if (status === 403) return `No access to ${what}.`;
  if (status === 404)
    return `${what.replace(/^(?:this|the) (.)/, (_, first: string) => first.toUpperCase())} not found.`;
  if (status === 410) return `No longer stored: ${what}.`;
  return `Could not load ${what} (${status}).`;
}
