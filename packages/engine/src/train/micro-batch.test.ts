import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PreparedDatum } from "./datum.js";
import { packMicroBatch, planMicroBatches } from "./micro-batch.js";
import type { TrainingBudget } from "./training-budget.js";

const budget: TrainingBudget = {
  microBatchTokens: 64,
  wholeTokens: 32,
  blockTokens: 32,
  stateBlockTokens: 512,
  chunkTokens: 32,
  keptKind: "all",
  layersPerSegment: 1,
  mergeFromTokens: Infinity,
  activationBytes: 0,
  keptBytesPerToken: 1,
};

function datum(length: number): PreparedDatum {
  return {
    tokens: Int32Array.from({ length }, (_, index) => index),
    targetsPerRow: 1,
    targets: new Int32Array(length),
    inputs: {},
    settings: {},
    activeRows: new Uint8Array(length),
    targetShape: [length],
  };
}

const lengthLists = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 40 });

describe("planMicroBatches", () => {
  it("puts every datum into exactly one batch within the limit, and long data alone", () => {
    fc.assert(
      fc.property(lengthLists, (lengths) => {
        const data = lengths.map(datum);
        const batches = planMicroBatches(data, budget);
        const members = batches.flat();
        expect(members.toSorted((a, b) => a - b)).toEqual(lengths.map((_, index) => index));
        for (const batch of batches) {
          const own = batch.map((index) => lengths[index] ?? 0);
          const total = own.reduce((sum, length) => sum + length, 0);
          if (own.some((length) => length > budget.wholeTokens)) expect(own.length).toBe(1);
          else expect(total).toBeLessThanOrEqual(budget.microBatchTokens);
        }
      }),
    );
  });

  it("makes at most twice as many batches as the tokens would fill", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 32 }), { minLength: 1 }), (lengths) => {
        const total = lengths.reduce((sum, length) => sum + length, 0);
        const { length: count } = planMicroBatches(lengths.map(datum), budget);
        expect(count).toBeLessThanOrEqual(Math.ceil((2 * total) / budget.microBatchTokens));
      }),
    );
  });
});

describe("packMicroBatch", () => {
  it("packs tokens one after the other", () => {
    const data = [datum(3), datum(2)];
    const batch = packMicroBatch(data, [0, 1], 4, 2, budget);
    expect(batch.tokens).toEqual(Int32Array.of(0, 1, 2, 0, 1));
    expect(batch.lengths).toEqual([3, 2]);
  });

  it("gives every token and head a slot of its own in the padded layout", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 16 }), { minLength: 2, maxLength: 4 }),
        (lengths) => {
          const heads = 3;
          const members = lengths.map((_, index) => index);
          const { arrangement } = packMicroBatch(lengths.map(datum), members, heads, heads, budget);
          if (arrangement.kind !== "short" || arrangement.layout === "dense") {
            expect(new Set(lengths).size).toBe(1);
            return;
          }
          const feed = arrangement.feeds[`slots.${heads}`];
          const slots = feed instanceof BigInt64Array ? Array.from(feed, Number) : [];
          expect(slots.length).toBeGreaterThan(0);
          const longest = Math.max(...lengths);
          expect(new Set(slots).size).toBe(slots.length);
          expect(Math.max(...slots)).toBeLessThan(lengths.length * heads * longest);
          let place = 0;
          for (const [sequence, length] of lengths.entries()) {
            for (let token = 0; token < length; token++) {
              for (let head = 0; head < heads; head++) {
                expect(slots[place++]).toBe((sequence * heads + head) * longest + token);
              }
            }
          }
        },
      ),
    );
  });

  it("covers a long sequence with blocks that end where the next begins, the last one first", () => {
    const { arrangement } = packMicroBatch([datum(100)], [0], 1, 1, budget);
    if (arrangement.kind !== "long") throw new Error("expected blocks");
    const spans = (window: number | null) =>
      arrangement.blocks(window).map((block) => [block.queryStart, block.queryEnd, block.keyStart]);
    expect(spans(null)).toEqual([
      [96, 100, 0],
      [64, 96, 0],
      [32, 64, 0],
      [0, 32, 0],
    ]);
    // The first query of a block with a window sees itself and those before.
    expect(spans(40)).toEqual([
      [96, 100, 57],
      [64, 96, 25],
      [32, 64, 0],
      [0, 32, 0],
    ]);
  });
});
