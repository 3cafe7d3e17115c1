import fc from "fast-check";
import { expect, it } from "vitest";
import { fairLevel } from "./fair-level.js";

it("uses all room, and takes nothing from members with less than a share", () => {
  const sizes = fc.array(fc.nat(1000), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(sizes, fc.nat(4000), (all, most) => {
      const level = fairLevel(all, most);
      const total = all.reduce((sum, size) => sum + size, 0);
      const kept = all.reduce((sum, size) => sum + Math.min(size, level), 0);
      expect(kept).toBeCloseTo(Math.min(total, most), 6);
      expect(level).toBeGreaterThanOrEqual(most / all.length);
    }),
  );
});
