/** What every error of this package carries besides its message. */
export interface TinkerErrorOptions {
  /** What led to it. */
  readonly cause?: unknown;
}

/**
 * The root of every error this package throws on purpose.
 *
 * - `code` is stable; branch on it or on the class, never on the message.
 * - `isRetryable`: the same call may succeed later.
 * - `isUserError`: the caller's input is at fault; it steers telemetry, never retrying.
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

/** Errors that blame the caller by themselves, without their causes. */
export interface BlamesUser {
  /** True if this error by itself blames the caller's input. */
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

/** An operation was cancelled: by `cancel()`, or because its client was closed. */
export class CancelledError extends TinkerError {
  override readonly name: string = "CancelledError";

  constructor(message = "The operation was cancelled.", options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "cancelled" });
  }
}

/** No usable credential: missing, of an unknown form, or a credential command that printed nothing. */
export class CredentialError extends TinkerError {
  override readonly name: string = "CredentialError";

  constructor(message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "credential" });
  }
}

/** A feature needs a package that is not installed; the message has the command that installs it. */
export class DependencyError extends TinkerError {
  override readonly name: string = "DependencyError";
  /** The package to install. */
  readonly packageName: string;

  constructor(packageName: string, purpose: string, options: TinkerErrorOptions = {}) {
    super(`Install ${packageName} ${purpose}: npm install ${packageName}`, {
      ...options,
      code: "missing_dependency",
    });
    this.packageName = packageName;
  }
}

/**
 * A training client that cannot go on, because it is not known whether the server has an earlier
 * operation; running later ones could train on the wrong state without anybody noticing.
 */
export class TrainingOrderError extends TinkerError {
  override readonly name: string = "TrainingOrderError";

  constructor(message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "training_order" });
  }
}
