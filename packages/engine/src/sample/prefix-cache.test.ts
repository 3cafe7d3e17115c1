import { describe, expect, it } from "vitest";
import { KvRows } from "./kv-rows.js";
import { PrefixCache, promptBlock } from "./prefix-cache.js";

const base = { adapter: "base", scope: "" };
const shape = { layers: 1, kvHeads: 1, headWidth: 2 };
const blockBytes = promptBlock * 2 * 2 * 4;

function block(value: number): KvRows {
  const rows = new KvRows(shape, promptBlock, 1);
  for (const array of [rows.keys(0, 1), rows.values(0, 1)]) {
    if (array instanceof Float32Array) array.fill(value);
  }
  rows.extend(0, promptBlock);
  return rows;
}

function prompt(...starts: readonly number[]): Int32Array {
  return Int32Array.from(
    starts.flatMap((start) => Array.from({ length: promptBlock }, (_, index) => start + index)),
  );
}

describe("PrefixCache", () => {
  it("finds the common leading blocks of two prompts", () => {
    const cache = new PrefixCache(shape, 100 * blockBytes);
    const known = prompt(1, 2, 3);
    const blocks = [block(1), block(2), block(3)];
    for (const [index, one] of blocks.entries()) cache.add(base, known, index, one);
    expect(cache.find(base, prompt(1, 2, 9), 3)).toEqual(blocks.slice(0, 2));
    expect(cache.find(base, known, 2)).toEqual(blocks.slice(0, 2));
    expect(cache.find(base, prompt(2, 3), 2)).toEqual([]);
    expect(cache.find({ adapter: "other adapter", scope: "" }, known, 3)).toEqual([]);
  });

  it("finds nothing that was remembered for another scope", () => {
    const cache = new PrefixCache(shape, 100 * blockBytes);
    cache.add({ ...base, scope: "ann" }, prompt(1), 0, block(1));
    expect(cache.find({ ...base, scope: "bob" }, prompt(1), 1)).toEqual([]);
    expect(cache.find({ ...base, scope: "ann" }, prompt(1), 1)).toHaveLength(1);
  });

  it("evicts the least recently used block", () => {
    const cache = new PrefixCache(shape, 2 * blockBytes);
    cache.add(base, prompt(1), 0, block(1));
    cache.add(base, prompt(2), 0, block(2));
    cache.find(base, prompt(1), 1);
    cache.add(base, prompt(3), 0, block(3));
    expect(cache.find(base, prompt(1), 1).length).toBe(1);
    expect(cache.find(base, prompt(2), 1).length).toBe(0);
    expect(cache.find(base, prompt(3), 1).length).toBe(1);
  });

  it("never keeps a block without those before it", () => {
    const cache = new PrefixCache(shape, 2 * blockBytes);
    const long = prompt(1, 2);
    cache.add(base, long, 0, block(1));
    cache.add(base, long, 1, block(2));
    cache.add(base, prompt(5), 0, block(5));
    expect(cache.find(base, long, 2).length).toBe(1);
    expect(cache.find(base, prompt(5), 1).length).toBe(1);
  });

  it("resumes only from blocks with states, which may be added later", () => {
    const withStates = { ...shape, states: [3] };
    const cache = new PrefixCache(withStates, 100 * blockBytes);
    const known = prompt(1, 2, 3);
    const blockWith = (value: number): KvRows => {
      const rows = new KvRows(withStates, promptBlock, 1);
      rows.state(0, 1).fill(value);
      return rows;
    };
    const blocks = [block(1), blockWith(2), block(3)];
    for (const [index, one] of blocks.entries()) cache.add(base, known, index, one);
    expect(cache.find(base, known, 3)).toEqual(blocks.slice(0, 2));
    expect(cache.find(base, known, 1)).toEqual([]);
    const last = blockWith(4);
    cache.add(base, known, 2, last);
    expect(cache.find(base, known, 3).at(-1)).toBe(last);
    cache.add(base, known, 2, block(3));
    expect(cache.find(base, known, 3).at(-1)).toBe(last);
  });

  it("counts the bytes of states", () => {
    const withStates = { ...shape, states: [2 * promptBlock * 4] };
    const large = new KvRows(withStates, promptBlock, 1);
    expect(large.bytes).toBe(3 * blockBytes);
    const cache = new PrefixCache(withStates, 4 * blockBytes);
    cache.add(base, prompt(1), 0, large);
    cache.add(base, prompt(2), 0, new KvRows(withStates, promptBlock, 1));
    expect(cache.find(base, prompt(1), 1)).toEqual([]);
    expect(cache.find(base, prompt(2), 1)).toHaveLength(1);
  });

  it("drops an adapter, and keeps nothing without memory", () => {
    const cache = new PrefixCache(shape, 2 * blockBytes);
    cache.add({ adapter: "adapter", scope: "one" }, prompt(1), 0, block(1));
    cache.drop("adapter");
    expect(cache.find({ adapter: "adapter", scope: "one" }, prompt(1), 1)).toEqual([]);
    const none = new PrefixCache(shape, 0);
    none.add(base, prompt(1), 0, block(1));
    expect(none.find(base, prompt(1), 1)).toEqual([]);
  });
});
