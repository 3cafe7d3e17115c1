import { TinkerError, type TinkerErrorOptions } from "./tinker-error.js";

/** A feature needs a package that is not installed; the message says how to install it. */
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
