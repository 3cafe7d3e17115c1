import { describe, expect, it } from "vitest";
import { BufferPool } from "../execution/buffer-pool.js";
import { KvRows } from "./kv-rows.js";

const shape = { layers: 2, kvHeads: 2, headWidth: 3 };

/** Arrays that lie in the processor's memory. */
function arraysOf(rows: KvRows, row: number): readonly [Float32Array, Float32Array] {
  const [keys, values] = [rows.keys(0, row + 1), rows.values(1, row + 1)];
  if (!(keys instanceof Float32Array && values instanceof Float32Array))
    throw new Error("no array");
  return [keys, values];
}

/** Appends numbers that encode token and head to a row, as a decoder would. */
function write(rows: KvRows, row: number, tokens: readonly number[]): void {
  for (const [index, token] of tokens.entries()) {
    for (const head of [0, 1]) {
      const place = placeOf(rows, row, head, rows.length(row) + index);
      for (const array of arraysOf(rows, row)) {
        array.fill(token * 100 + head * 10, place, place + shape.headWidth);
      }
    }
  }
  rows.extend(row, tokens.length);
}

function placeOf(rows: KvRows, row: number, head: number, token: number): number {
  return ((row * shape.kvHeads + head) * rows.capacity + token) * shape.headWidth;
}

/** The first number of every token of a head. */
function tokensOf(rows: KvRows, row: number, head: number): number[] {
  return Array.from({ length: rows.length(row) }, (_, token) => {
    const place = placeOf(rows, row, head, token);
    const [keys, values] = arraysOf(rows, row);
    expect(values[place]).toBe(keys[place]);
    return keys[place] ?? NaN;
  });
}

describe("KvRows", () => {
  it("counts the tokens that a decoder writes", () => {
    const rows = new KvRows(shape, 4, 2);
    write(rows, 1, [5]);
    write(rows, 1, [6, 7]);
    expect([...rows.lengths(2)]).toEqual([0, 3]);
    expect(tokensOf(rows, 1, 0)).toEqual([500, 600, 700]);
    expect(tokensOf(rows, 1, 1)).toEqual([510, 610, 710]);
  });

  it("copies states with whole rows only", () => {
    const withStates = { ...shape, states: [2, 3] };
    const rows = new KvRows(withStates, 4, 2);
    write(rows, 1, [1, 2]);
    rows.state(0, 2).set([7, 8], 2);
    rows.state(1, 2).set([4, 5, 6], 3);
    const larger = rows.resized(3, 2);
    larger.copyRow(larger, 1, 2);
    expect([...larger.state(0, 3)]).toEqual([0, 0, 7, 8, 7, 8]);
    expect([...larger.state(1, 3).subarray(6)]).toEqual([4, 5, 6]);
    larger.appendFrom(rows, 1, 0, 2, 0);
    expect([...larger.state(0, 1)]).toEqual([0, 0]);
    larger.copyStates(rows, 1, 0);
    expect([...larger.state(1, 1)]).toEqual([4, 5, 6]);
    larger.clear(2);
    expect([...larger.state(0, 3)]).toEqual([7, 8, 7, 8, 0, 0]);
    expect(() => larger.state(2, 1)).toThrow("no state 2");
  });

  it("keeps rows on resizing, and copies parts of them", () => {
    const rows = new KvRows(shape, 4, 1);
    write(rows, 0, [1, 2, 3]);
    const larger = rows.resized(3, 1);
    expect(tokensOf(larger, 0, 1)).toEqual([110, 210, 310]);
    larger.appendFrom(rows, 0, 1, 2, 2);
    expect(tokensOf(larger, 2, 0)).toEqual([200, 300]);
    larger.copyRow(larger, 0, 2);
    expect(tokensOf(larger, 2, 0)).toEqual([100, 200, 300]);
  });

  it("takes memory from a pool and returns it", () => {
    const pool = new BufferPool(0);
    const rows = new KvRows(shape, 4, 1, pool);
    write(rows, 0, [1, 2, 3]);
    const larger = rows.resized(2, 1);
    rows.release();
    const other = new KvRows(shape, 4, 1, pool);
    expect(arraysOf(other, 0)[0].buffer).toBe(arraysOf(rows, 0)[1].buffer);
    expect(other.length(0)).toBe(0);
    expect(tokensOf(larger, 0, 1)).toEqual([110, 210, 310]);
  });

  it("is one array, and places without tokens take no memory", () => {
    const pool = new BufferPool(0);
    const rows = new KvRows(shape, 4, 1, pool);
    const all = [0, 1].flatMap((layer) => [rows.keys(layer, 1), rows.values(layer, 1)]);
    const arrays = all.filter((array) => array instanceof Float32Array);
    expect(new Set(arrays.map(({ buffer }) => buffer)).size).toBe(1);
    expect(new Set(arrays.map(({ byteOffset }) => byteOffset)).size).toBe(2 * shape.layers);
    expect(() => rows.keys(shape.layers, 1)).toThrow("no layer");
  });

  it("refuses more tokens than it has room for", () => {
    const rows = new KvRows(shape, 2, 1);
    expect(() => rows.extend(0, 3)).toThrow("full");
    const longer = new KvRows(shape, 3, 1);
    write(longer, 0, [1, 2, 3]);
    expect(() => rows.copyRow(longer, 0, 0)).toThrow("full");
  });

  it("drops tokens outside the window of a layer in steps, and copies the others", () => {
    const windowed = { layers: 2, kvHeads: 1, headWidth: 1, windows: [null, 100] };
    const rows = new KvRows(windowed, 500, 1);
    expect([rows.places(null), rows.places(100)]).toEqual([500, 228]);
    const fill = (target: KvRows, until: number): void => {
      while (target.length(0) < until) {
        const token = target.length(0);
        for (const [layer, window] of [null, 100].entries()) {
          const place = token - target.left(window, 0);
          for (const array of [target.keys(layer, 1), target.values(layer, 1)]) {
            (array as Float32Array)[place] = token;
          }
        }
        target.extend(0, 1);
      }
    };
    const held = (target: KvRows): number[] => {
      const count = target.length(0) - target.left(100, 0);
      return [...(target.values(1, 1) as Float32Array).subarray(0, count)];
    };
    const from = (first: number, end: number): number[] =>
      Array.from({ length: end - first }, (_, index) => first + index);
    fill(rows, 163);
    expect(held(rows)).toEqual(from(0, 163));
    fill(rows, 164);
    expect(held(rows)).toEqual(from(64, 164));
    fill(rows, 300);
    expect(held(rows)).toEqual(from(192, 300));
    expect((rows.keys(0, 1) as Float32Array).subarray(0, 300)).toEqual(
      Float32Array.from(from(0, 300)),
    );
    const copy = rows.resized(2, 1);
    expect(held(copy)).toEqual(from(192, 300));
    // Block by block, like a cached prompt.
    const blocks = new KvRows(windowed, 500, 1);
    const source = new KvRows(windowed, 500, 1);
    for (let end = 64; end <= 320; end += 64) {
      fill(source, end);
      const block = new KvRows(windowed, 64, 1);
      block.appendFrom(source, 0, end - 64, 64, 0);
      blocks.appendFrom(block, 0, 0, 64, 0);
      expect(held(blocks)).toEqual(held(source));
    }
    expect(() => copy.appendFrom(rows, 0, 0, 200, 1)).toThrow("left a window");
  });
});
