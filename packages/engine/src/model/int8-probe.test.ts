import { expect, it } from "vitest";
import { processor } from "../execution/device.js";
import { probeInt8 } from "./int8-probe.js";

it("finds digits with exact sums on this processor, and their speed", async () => {
  const { digitBits, speedup, isUsed } = await probeInt8({ threads: 1, device: processor });
  // Unsigned digits of 7 bits cannot overflow anywhere.
  expect([7, 8]).toContain(digitBits);
  expect(speedup).toBeGreaterThan(0);
  expect(typeof isUsed).toBe("boolean");
});
