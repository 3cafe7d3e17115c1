import fc from "fast-check";
import { expect, it } from "vitest";
import { GatheredParts } from "./gathered-parts.js";

function gathered(parts: readonly Uint8Array[]): GatheredParts {
  const all = new GatheredParts();
  for (const part of parts) all.add(part);
  return all;
}

it("keeps every byte in its place, whatever the parts are like", () => {
  const size = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 300_000 }));
  fc.assert(
    fc.property(fc.array(size, { maxLength: 20 }), (sizes) => {
      let next = 0;
      const parts = sizes.map((length) => Uint8Array.from({ length }, () => next++ % 251));
      const all = gathered(parts);
      expect(all.sizeBytes).toBe(next);
      expect(Buffer.concat(all.take()).equals(Buffer.concat(parts))).toBe(true);
    }),
    { numRuns: 50 },
  );
});

it("makes few pieces of many parts, most of which are alone in their memory", () => {
  const pieces = gathered(Array.from({ length: 1000 }, () => new Uint8Array(16_384))).take();
  expect(pieces.length).toBeLessThan(25);
  // Only the last one may have to be copied: it is not a large one.
  for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(2 ** 20);
  const shared = pieces.filter(({ buffer, byteLength }) => buffer.byteLength !== byteLength);
  expect(shared.length).toBeLessThanOrEqual(1);
});

it("takes no more memory for what is to come than has arrived, beyond a little", () => {
  const parts: Uint8Array[] = [];
  for (let arrived = 0; arrived < 3e6; arrived += 5000) {
    parts.push(new Uint8Array(5000));
    const takenBytes = gathered(parts)
      .take()
      .reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
    expect(takenBytes).toBeLessThanOrEqual(2 * (arrived + 5000) + 16_384);
  }
});

it("does not follow what happens to a part later", () => {
  const part = Uint8Array.of(1, 2, 3);
  const all = gathered([part]);
  part.fill(9);
  expect(all.take()).toEqual([Uint8Array.of(1, 2, 3)]);
});
