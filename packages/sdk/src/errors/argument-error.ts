import { WireError } from "./wire-error.js";
import { TinkerError, type BlamesUser, type TinkerErrorOptions } from "./tinker-error.js";

/** An argument that cannot be used; thrown before any request is made. */
export class ArgumentError extends TinkerError implements BlamesUser {
  override readonly name: string = "ArgumentError";
  /** The argument or field at fault, as the caller wrote it: `samplingParams.temperature`. */
  readonly field: string;
  /** What is wrong with it, and what would do. */
  readonly problem: string;
  /** Always: the argument came from the caller. */
  readonly blamesUser = true;

  constructor(field: string, problem: string, options: TinkerErrorOptions = {}) {
    super(field === "" ? problem : `${field}: ${problem}`, {
      ...options,
      code: "invalid_argument",
    });
    this.field = field;
    this.problem = problem;
  }

  /** The error of a part of an argument, with the caller's name for it. */
  static within(field: string, cause: unknown): ArgumentError {
    if (cause instanceof ArgumentError) {
      return new ArgumentError(joined(field, cause.field), cause.problem, { cause });
    }
    if (cause instanceof WireError) {
      return new ArgumentError(joined(field, publicPath(cause.path)), cause.problem, { cause });
    }
    const problem = cause instanceof Error ? cause.message : String(cause);
    return new ArgumentError(field, problem, { cause });
  }
}

function joined(outer: string, inner: string): string {
  if (inner === "" || outer === "") return outer + inner;
  return inner.startsWith("[") ? outer + inner : `${outer}.${inner}`;
}

/** Wire names are snake_case; the caller wrote camelCase, except where names are the API's own. */
function publicPath(path: string): string {
  if (/^loss_fn_(inputs|config)/.test(path)) {
    const [first = "", ...rest] = path.split(".");
    return [camelCase(first), ...rest].join(".");
  }
  return camelCase(path);
}

function camelCase(text: string): string {
  return text.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
