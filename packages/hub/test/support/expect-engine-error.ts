import { expect } from "vitest";
import { EngineError } from "../../src/weights/engine-error.js";

/** Waits for a call to fail with an EngineError of this code and returns its message. */
export async function engineErrorOf(code: string, action: () => unknown): Promise<string> {
  let error: unknown;
  try {
    await action();
  } catch (thrown) {
    error = thrown;
  }
  if (!(error instanceof EngineError)) {
    throw new Error(`expected the EngineError "${code}"`, { cause: error });
  }
  expect(error.code).toBe(code);
  return error.message;
}
