import { describe, expect, it } from "vitest";
import { capacityFor, KvRows } from "./kv-rows.js";

const shape = { layers: 2, kvHeads: 2, headDim: 3 };

/** New keys and values that tell token, head and layer by their number. */
function fresh(tokens: readonly number[]) {
  const layer = (offset: number) =>
    Float32Array.from(
      tokens.flatMap((token) =>
        [0, 1].flatMap((head) => [0, 1, 2].map((i) => token * 100 + head * 10 + i + offset)),
      ),
    );
  return { keys: [layer(0), layer(0.25)], values: [layer(0.5), layer(0.75)] };
}

/** The first number of every token of a head. */
function tokensOf(rows: KvRows, row: number, head: number): number[] {
  const keys = rows.keys(0, row + 1);
  return Array.from({ length: rows.length(row) }, (_, token) => {
    const place = ((row * shape.kvHeads + head) * rows.capacity + token) * shape.headDim;
    return keys[place] ?? NaN;
  });
}

describe("KvRows", () => {
  it("stores tokens by head and shows them in the mask", () => {
    const rows = new KvRows(shape, 4, 2);
    rows.append(1, fresh([5, 6, 7]), 1, 2);
    expect(tokensOf(rows, 1, 0)).toEqual([600, 700]);
    expect(tokensOf(rows, 1, 1)).toEqual([610, 710]);
    const visible = [...rows.mask(2)].map((value) => (value === 0 ? "x" : "."));
    expect(visible.join("")).toBe("....xx..");
  });

  it("keeps rows when it is resized, and copies parts of them", () => {
    const rows = new KvRows(shape, 4, 1);
    rows.append(0, fresh([1, 2, 3]), 0, 3);
    const larger = rows.resized(8, 3, 1);
    expect(tokensOf(larger, 0, 1)).toEqual([110, 210, 310]);
    larger.appendFrom(rows, 0, 1, 2, 2);
    expect(tokensOf(larger, 2, 0)).toEqual([200, 300]);
    larger.copyRow(larger, 0, 2);
    expect(tokensOf(larger, 2, 0)).toEqual([100, 200, 300]);
    expect([...larger.mask(3)].slice(16).filter((value) => value === 0).length).toBe(3);
  });

  it("refuses more tokens than it has room for", () => {
    const rows = new KvRows(shape, 2, 1);
    expect(() => rows.append(0, fresh([1, 2, 3]), 0, 3)).toThrow("full");
  });

  it("always leaves places free at the end", () => {
    for (const tokens of [0, 1, 63, 64, 65, 1000]) {
      expect(capacityFor(tokens)).toBeGreaterThanOrEqual(tokens + 32);
    }
  });
});
