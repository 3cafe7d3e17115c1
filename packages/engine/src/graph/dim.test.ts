import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Dim } from "./dim.js";

const bindings = { a: 3, b: 5, c: 7 };

/** A size together with its value under `bindings`. */
const sizes = fc.letrec<{ size: { dim: Dim; value: number } }>((tie) => ({
  size: fc.oneof(
    { depthSize: "small" },
    fc.integer({ min: 0, max: 9 }).map((value) => ({ dim: Dim.of(value), value })),
    fc.constantFrom("a" as const, "b" as const, "c" as const).map((name) => ({
      dim: Dim.symbol(name),
      value: bindings[name],
    })),
    fc.tuple(tie("size"), tie("size")).map(([left, right]) => ({
      dim: left.dim.plus(right.dim),
      value: left.value + right.value,
    })),
    fc.tuple(tie("size"), tie("size")).map(([left, right]) => ({
      dim: left.dim.times(right.dim),
      value: left.value * right.value,
    })),
  ),
})).size;

describe("Dim", () => {
  it("evaluates like the same arithmetic on numbers", () => {
    fc.assert(
      fc.property(sizes, ({ dim, value }) => {
        expect(dim.evaluate(bindings)).toBe(value);
      }),
    );
  });

  it("is equal independent of the order of operations", () => {
    fc.assert(
      fc.property(sizes, sizes, sizes, ({ dim: x }, { dim: y }, { dim: z }) => {
        expect(x.plus(y).equals(y.plus(x))).toBe(true);
        expect(x.times(y).equals(y.times(x))).toBe(true);
        expect(x.times(y.plus(z)).equals(x.times(y).plus(x.times(z)))).toBe(true);
      }),
    );
  });

  it("distinguishes sizes that depend on different symbols", () => {
    const [tokens, rows] = [Dim.symbol("tokens"), Dim.symbol("rows")];
    expect(tokens.equals(rows)).toBe(false);
    expect(tokens.times(2).equals(tokens)).toBe(false);
    expect(tokens.constant).toBeUndefined();
    expect(Dim.of(4).times(3).constant).toBe(12);
  });

  it("names the symbol that has no value", () => {
    expect(() => Dim.symbol("rank").evaluate({})).toThrow('size "rank" has no value');
  });
});
