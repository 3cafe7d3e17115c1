import { expect, it } from "vitest";
import fc from "fast-check";
import {
  drGrpo,
  leaveOneOut,
  meanCentred,
  normalized,
  rawRewards,
  reinforcePlusPlus,
  type AdvantageEstimator,
} from "./advantages.js";

// Worked out by hand: means 2 and 1, deviations sqrt(2/3) and 1; over the batch sqrt(4/5).
const rewards = [
  [1, 2, 3],
  [0, 2],
];
const root = (value: number): number => Math.sqrt(value);

it.each<[string, AdvantageEstimator, number[][]]>([
  ["none", rawRewards, rewards],
  [
    "mean",
    meanCentred,
    [
      [-1, 0, 1],
      [-1, 1],
    ],
  ],
  [
    "leave-one-out",
    leaveOneOut,
    [
      [-1.5, 0, 1.5],
      [-2, 2],
    ],
  ],
  [
    "normalised",
    normalized,
    [
      [-root(1.5), 0, root(1.5)],
      [-1, 1],
    ],
  ],
  [
    "REINFORCE++",
    reinforcePlusPlus,
    [
      [-root(1.25), 0, root(1.25)],
      [-root(1.25), root(1.25)],
    ],
  ],
  [
    "Dr. GRPO",
    drGrpo({ maxTokens: 4 }),
    [
      [-0.25, 0, 0.25],
      [-0.25, 0.25],
    ],
  ],
])("%s", (_, estimator, expected) => {
  const found = estimator(rewards);
  expect(found.map(({ length }) => length)).toEqual(expected.map(({ length }) => length));
  for (const [at, value] of found.flat().entries()) {
    expect(value).toBeCloseTo(expected.flat()[at]!, 5);
  }
});

const groups = fc.array(fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 6 }), {
  minLength: 1,
  maxLength: 5,
});

it.each<[string, AdvantageEstimator]>([
  ["mean", meanCentred],
  ["leave-one-out", leaveOneOut],
  ["normalised", normalized],
  ["REINFORCE++", reinforcePlusPlus],
  ["Dr. GRPO", drGrpo({ maxTokens: 7 })],
])(
  "%s: a group sums to 0, is the same when all earn more, and constant rewards teach nothing",
  (_, estimator) => {
    fc.assert(
      fc.property(groups, fc.integer({ min: -5, max: 5 }), (drawn, more) => {
        const found = estimator(drawn);
        const shifted = estimator(drawn.map((group) => group.map((reward) => reward + more)));
        for (const [index, group] of found.entries()) {
          expect(group.reduce((sum, value) => sum + value, 0)).toBeCloseTo(0, 6);
          for (const [at, value] of group.entries()) {
            expect(shifted[index]![at]).toBeCloseTo(value, 6);
            if (new Set(drawn[index]).size === 1) expect(value).toBeCloseTo(0, 6);
          }
        }
      }),
    );
  },
);

it("leaves a group of one without a baseline at 0, and needs a length to divide by", () => {
  expect(leaveOneOut([[5]])).toEqual([[0]]);
  expect(() => drGrpo({ maxTokens: 0 })).toThrow(/maxTokens: must be above 0/);
});
