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

/** Writes numbers that tell token and head behind the tokens of a row, as a decoder would. */
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
  it("counts what a decoder writes", () => {
    const rows = new KvRows(shape, 4, 2);
    write(rows, 1, [5]);
    write(rows, 1, [6, 7]);
    expect([...rows.lengths(2)]).toEqual([0, 3]);
    expect(tokensOf(rows, 1, 0)).toEqual([500, 600, 700]);
    expect(tokensOf(rows, 1, 1)).toEqual([510, 610, 710]);
  });

  it("keeps rows when it is resized, and copies parts of them", () => {
    const rows = new KvRows(shape, 4, 1);
    write(rows, 0, [1, 2, 3]);
    const larger = rows.resized(3, 1);
    expect(tokensOf(larger, 0, 1)).toEqual([110, 210, 310]);
    larger.appendFrom(rows, 0, 1, 2, 2);
    expect(tokensOf(larger, 2, 0)).toEqual([200, 300]);
    larger.copyRow(larger, 0, 2);
    expect(tokensOf(larger, 2, 0)).toEqual([100, 200, 300]);
  });

  it("takes memory from a pool and gives it back", () => {
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

  it("is one array, of which places without tokens take no memory", () => {
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
});
