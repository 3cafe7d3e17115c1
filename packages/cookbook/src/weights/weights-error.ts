import { stat } from "node:fs/promises";
import { EngineError } from "@tinker-ts/hub/weights";
import { TinkerError, type TinkerErrorOptions } from "tinker-ts";

/** Weights that do not fit together, or a file that is not what it should be; nothing was written. */
export class WeightsError extends TinkerError {
  override readonly name: string = "WeightsError";
  readonly blamesUser = true;

  constructor(message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "weights" });
  }
}

/** Runs an action; what it refuses about files becomes a WeightsError. */
export async function asWeightsError<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (!(cause instanceof EngineError)) throw cause;
    throw new WeightsError(cause.message, { cause });
  }
}

/** Refuses an output folder that exists. */
export async function refuseExisting(output: string): Promise<void> {
  if (!(await stat(output).catch(() => undefined))) return;
  throw new WeightsError(`${output} exists already; choose a folder that does not`);
}
