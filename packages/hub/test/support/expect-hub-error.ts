import { expect } from "vitest";
import { HubError } from "../../src/errors.js";

/** Waits for a call to fail with an HubError of this code and returns its message. */
export async function hubErrorOf(code: string, action: () => unknown): Promise<string> {
  let error: unknown;
  try {
    await action();
  } catch (thrown) {
    error = thrown;
  }
  if (!(error instanceof HubError)) {
    throw new Error(`expected the HubError "${code}"`, { cause: error });
  }
  expect(error.code).toBe(code);
  return error.message;
}
