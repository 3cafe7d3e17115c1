import { WireError, type WireDirection } from "../errors/wire-error.js";

/** Runs a codec; whatever goes wrong inside comes out as a `WireError` about this type. */
export function guardWire<T>(typeName: string, direction: WireDirection, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof WireError) throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new WireError(direction, typeName, "", problem, { cause: error });
  }
}
