import { describe, expect, it } from "vitest";
import { RandomStream } from "./random.js";

function draw(count: number, ...key: readonly number[]): number[] {
  const stream = new RandomStream(...key);
  return Array.from({ length: count }, () => stream.next());
}

describe("RandomStream", () => {
  it("is fixed by its key, on every machine", () => {
    expect(draw(3, 42, 0)).toEqual(draw(3, 42, 0));
    expect(draw(2, 1)).toMatchInlineSnapshot(`
      [
        0.5393210523276553,
        0.4614727723020975,
      ]
    `);
  });

  it("differs for neighbouring keys, large keys and keys of other lengths", () => {
    const keys = [[0], [1], [-1], [0, 0], [0, 1], [1, 0], [2 ** 32], [2 ** 40], [2 ** 53 - 1]];
    const firsts = new Set(keys.map((key) => draw(1, ...key)[0]));
    expect(firsts.size).toBe(keys.length);
  });

  it("is uniform or normal", () => {
    const uniform = draw(20_000, 7);
    const mean = uniform.reduce((sum, value) => sum + value, 0) / uniform.length;
    expect(mean).toBeCloseTo(0.5, 1);
    expect(uniform.every((value) => value >= 0 && value < 1)).toBe(true);
    const stream = new RandomStream(9);
    const normal = Array.from({ length: 20_000 }, () => stream.nextNormal());
    const variance = normal.reduce((sum, value) => sum + value * value, 0) / normal.length;
    expect(variance).toBeCloseTo(1, 1);
  });
});
