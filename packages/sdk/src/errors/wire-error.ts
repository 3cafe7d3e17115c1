import { TinkerError, type BlamesUser, type TinkerErrorOptions } from "./tinker-error.js";

/** Which way a message was going when it turned out to be malformed. */
export type WireDirection = "encode" | "decode";

/** A message that does not fit its type; names the type, the field and what is wrong with it. */
export class WireError extends TinkerError implements BlamesUser {
  override readonly name: string = "WireError";
  /** Whether it was being written or read. */
  readonly direction: WireDirection;
  /** The wire type, such as `SampleRequest`. */
  readonly typeName: string;
  /** Where in the message, in wire names: `sampling_params.seed`, `data[3].model_input`; empty at the top. */
  readonly path: string;
  /** What is wrong, in words. */
  readonly problem: string;

  constructor(
    direction: WireDirection,
    typeName: string,
    path: string,
    problem: string,
    options: TinkerErrorOptions = {},
  ) {
    super(`${typeName}${path && !path.startsWith("[") ? "." : ""}${path}: ${problem}`, {
      ...options,
      code: direction === "encode" ? "wire_encode" : "wire_decode",
    });
    this.direction = direction;
    this.typeName = typeName;
    this.path = path;
    this.problem = problem;
  }

  /** What cannot be written was given by the caller. */
  get blamesUser(): boolean {
    return this.direction === "encode";
  }
}

/** The error of a codec as a `WireError` about the type that it writes or reads. */
export function toWireError(error: unknown, typeName: string, direction: WireDirection): WireError {
  if (error instanceof WireError) return error;
  const problem = error instanceof Error ? error.message : String(error);
  return new WireError(direction, typeName, "", problem, { cause: error });
}
