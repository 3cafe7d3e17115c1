import { describe, expect, it } from "vitest";
import { BufferPool } from "./buffer-pool.js";

describe("BufferPool", () => {
  it("reuses returned buffers, also for slightly smaller arrays", () => {
    const pool = new BufferPool();
    const first = pool.take(10_000);
    pool.giveBack(first);
    const second = pool.take(9_900);
    expect(second.buffer).toBe(first.buffer);
    expect(second.length).toBe(9_900);
  });

  it("never hands out the same memory twice at once", () => {
    const pool = new BufferPool();
    const arrays = Array.from({ length: 5 }, () => pool.take(100));
    expect(new Set(arrays.map(({ buffer }) => buffer)).size).toBe(5);
    const [first] = arrays;
    if (first === undefined) throw new Error("unreachable");
    pool.giveBack(first);
    expect(() => pool.giveBack(first)).toThrow("twice");
  });

  it("replaces buffers of other sizes beyond the peak of use", () => {
    const pool = new BufferPool(10_000);
    const short = Array.from({ length: 4 }, () => pool.take(1_000_000));
    const mostBytes = pool.heldBytes;
    pool.giveBack(...short);
    const long = [pool.take(2_000_000), pool.take(2_000_000)];
    expect(pool.heldBytes).toBeLessThanOrEqual(mostBytes);
    pool.giveBack(...long);
    const again = pool.take(2_000_000);
    expect(long.map(({ buffer }) => buffer)).toContain(again.buffer);
  });

  it("frees unused memory beyond a limit", () => {
    const pool = new BufferPool();
    const array = pool.take(1_000_000);
    pool.giveBack(array);
    pool.trim(1e9);
    expect(pool.take(1_000_000).buffer).toBe(array.buffer);
    pool.giveBack(array);
    pool.trim(1000);
    expect(pool.take(1_000_000).buffer).not.toBe(array.buffer);
  });
});
