import fc from "fast-check";
import { Datum, TensorData } from "tinker-ts";
import { describe, expect, it } from "vitest";
import {
  dpo,
  ipo,
  kto,
  pairLoss,
  simpo,
  tournamentScores,
  unpairedLoss,
  type PreferenceLoss,
} from "./index.js";

const losses: Readonly<Record<string, PreferenceLoss>> = {
  dpo: dpo({ beta: 0.3 }),
  ipo: ipo({ beta: 0.2 }),
  simpo: simpo(),
};

const numbers = (length: number): fc.Arbitrary<number[]> =>
  fc.array(fc.double({ min: -3, max: -0.01, noNaN: true }), {
    minLength: length,
    maxLength: length,
  });

const lengths = [3, 2, 4, 3];
const data = lengths.map(
  (length) =>
    new Datum({
      modelInput: Array.from({ length }, (_, at) => at),
      lossFnInputs: {
        target_tokens: Array.from({ length }, (_, at) => at),
        weights: Array.from({ length }, (_, at) => (at === 0 ? 0 : 1)),
      },
    }),
);

function lossAt(loss: PreferenceLoss, logprobs: readonly number[][], references: number[][]) {
  // Double precision, so that differences can be taken; a tensor holds 32 bits.
  const tensors = logprobs.map(
    (values) => ({ data: Float64Array.from(values) }) as unknown as TensorData,
  );
  return pairLoss(loss, data, tensors, references);
}

describe.each(Object.entries(losses))("%s", (_, loss) => {
  it("has the gradient of its value", () =>
    fc.assert(
      fc.property(
        fc.tuple(...lengths.map(numbers)),
        fc.tuple(...lengths.map(numbers)),
        (own, theirs) => {
          const { gradients } = lossAt(loss, own, theirs);
          for (const [datum, row] of own.entries()) {
            for (const at of row.keys()) {
              const moved = (by: number): number =>
                lossAt(
                  loss,
                  own.map((values, index) =>
                    index === datum
                      ? values.map((value, i) => (i === at ? value + by : value))
                      : values,
                  ),
                  theirs,
                ).loss;
              expect(gradients[datum]![at]).toBeCloseTo((moved(1e-6) - moved(-1e-6)) / 2e-6, 4);
            }
          }
        },
      ),
      { numRuns: 20 },
    ));

  it("does not depend on the order of pairs", () => {
    const own = lengths.map((length, index) =>
      Array.from({ length }, (_unused, at) => -0.3 * at - 0.1 * index),
    );
    const zeros = lengths.map((length) => Array<number>(length).fill(0));
    const tensors = own.map((values) => TensorData.fromTypedArray(Float32Array.from(values)));
    const swap = <T>([a, b, c, d]: readonly T[]): T[] => [c!, d!, a!, b!];
    const straight = pairLoss(loss, data, tensors, zeros);
    const swapped = pairLoss(loss, swap(data), swap(tensors), swap(zeros));
    expect(swapped.loss).toBeCloseTo(straight.loss, 12);
  });

  it("stays finite for margins without end", () => {
    for (const chosen of [-1e4, 1e4]) {
      const slope = loss.at({ chosen, rejected: 0, chosenTokens: 1, rejectedTokens: 1 });
      expect(Object.values(slope).every(Number.isFinite)).toBe(true);
    }
  });
});

describe("pairs", () => {
  it("need a partner each, and references where the loss compares with them", () => {
    const tensors = data.map(() => TensorData.fromTypedArray(new Float32Array(4)));
    expect(() => pairLoss(dpo(), data.slice(0, 3), tensors, [])).toThrow(/must be pairs/);
    expect(() => pairLoss(dpo(), data, tensors, undefined)).toThrow(/references/);
    expect(() => pairLoss(dpo(), data, tensors, [[0]])).toThrow(/3 entries, got 1/);
    expect(() => dpo({ beta: 0 })).toThrow(/beta: must be above 0/);
  });
});

describe("kto", () => {
  it("has the gradient of its value, the mean held", () => {
    const shifts = [0.4, -1.1, 0.2, 0.9];
    const at = (values: readonly number[]) =>
      kto().atAll(values.map((shift, index) => ({ shift, desirable: index % 2 === 0 })));
    // With a mean below 0 the origin stays at 0 under small changes.
    const low = shifts.map((shift) => shift - 2);
    const { slopes } = at(low);
    for (const index of low.keys()) {
      const moved = (by: number): number =>
        at(low.map((value, i) => (i === index ? value + by : value))).value;
      expect(slopes[index]).toBeCloseTo((moved(1e-6) - moved(-1e-6)) / 2e-6, 6);
    }
    expect(slopes[0]).toBeLessThan(0);
    expect(slopes[1]).toBeGreaterThan(0);
  });
});

describe("the loss of single completions", () => {
  it("has the gradient of its value by every token, and takes references summed up or not", () => {
    const desirable = [true, false, true, false];
    const loss = kto({ beta: 0.7 });
    // Less probable than under the reference on the whole, so the origin stays at 0.
    const own = lengths.map((length, index) =>
      Array.from({ length }, (_unused, at) => -1 - 0.3 * at - 0.2 * index),
    );
    const theirs = lengths.map((length) => Array<number>(length).fill(-0.5));
    const at = (values: readonly number[][], references: (number[] | number)[]) =>
      unpairedLoss(
        loss,
        data,
        values.map((row) => ({ data: Float64Array.from(row) }) as unknown as TensorData),
        references,
        desirable,
      );
    const { gradients, loss: value } = at(own, theirs);
    for (const [datum, row] of own.entries()) {
      for (const place of row.keys()) {
        const moved = (by: number): number => {
          const changed = own.map((values) => [...values]);
          changed[datum]![place]! += by;
          return at(changed, theirs).loss;
        };
        expect(gradients[datum]![place]).toBeCloseTo((moved(1e-6) - moved(-1e-6)) / 2e-6, 6);
      }
    }
    // The first token of each has no weight.
    const sums = theirs.map((row) => row.slice(1).reduce((sum, logprob) => sum + logprob, 0));
    expect(at(own, sums).loss).toBeCloseTo(value, 12);
  });
});

describe("a tournament", () => {
  it("rewards each member with wins minus losses, per match", () => {
    const pairs = [
      [0, 1],
      [1, 0],
      [0, 2],
    ] as const;
    expect(tournamentScores(4, pairs, [1, -1, 0])).toEqual([-2 / 3, 1, 0, 0]);
  });
});
