/** What every error of this package carries besides its message. */
export interface TinkerErrorOptions {
  /** What led to it. */
  readonly cause?: unknown;
}

/**
 * The root of every error this package throws on purpose.
 *
 * - `code` is stable; branch on it or on the class, never on the message.
 * - `isRetryable` says whether the same call may succeed later.
 * - `isUserError` says whether the caller's input is at fault; it steers telemetry, never retrying.
 */
export class TinkerError extends Error {
  /** The name of the class, also across copies of this package. */
  override readonly name: string = "TinkerError";
  /** A stable name of the problem, such as `timeout` or `http_404`. */
  readonly code: string;

  constructor(message: string, options: TinkerErrorOptions & { code?: string } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = options.code ?? "tinker_error";
  }

  /** Whether the same call may succeed later. */
  get isRetryable(): boolean {
    return false;
  }

  /** Whether the caller's input is at fault. */
  get isUserError(): boolean {
    return isUserError(this);
  }
}

/** Errors that know by themselves whether the caller is at fault, without their causes. */
export interface BlamesUser {
  /** Whether this error by itself says that the caller's input is at fault. */
  readonly blamesUser: boolean;
}

/**
 * Whether the caller's input is at fault: true when the error or anything in its cause chain is a
 * failed request of category `user` or carries a 4xx status other than 408.
 */
export function isUserError(error: unknown): boolean {
  const seen = new Set<unknown>();
  for (
    let current = error;
    current instanceof Error && !seen.has(current);
    current = current.cause
  ) {
    seen.add(current);
    if ("blamesUser" in current && current.blamesUser === true) return true;
  }
  return false;
}
