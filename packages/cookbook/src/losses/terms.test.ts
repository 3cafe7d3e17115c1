import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchOf, evaluate, numericGradients, type Rows } from "../../test/support/loss-batches.js";
import {
  anchor,
  cispo,
  consistency,
  crossEntropy,
  dro,
  elasticNet,
  entropy,
  entropyEstimate,
  gradientPenalty,
  importanceSampling,
  jensenShannon,
  klDivergence,
  klEstimate,
  l1,
  l2,
  matrixOrthogonality,
  orthogonality,
  outputMagnitude,
  pairedConsistency,
  ppo,
  type SideSource,
  type Term,
} from "./index.js";

const p = [0.4, 0.3, 0.2, 0.1].map(Math.log);
const q = [0.25, 0.25, 0.25, 0.25].map(Math.log);
const x = [-0.1, -1.2, -2.3];
const y = [-0.3, -1, -2.5];

async function expectTerm(
  term: Term,
  rows: Rows,
  value: number,
  gradient?: readonly number[],
): Promise<void> {
  const result = await evaluate(term, batchOf([rows]));
  expect(result.value).toBeCloseTo(value, 6);
  for (const [slot, expected] of (gradient ?? []).entries()) {
    expect(result.gradients[0]![slot], `entry ${slot}`).toBeCloseTo(expected, 6);
  }
}

describe("distributions over all tokens", () => {
  const all = { candidates: "all", reference: [q] } as const;

  it("computes the divergence from the reference and its free derivative", async () => {
    await expectTerm(klDivergence(all), [p], 0.10644, [0.588001, 0.354696, 0.155371, 0.008371]);
    await expectTerm(
      klDivergence({ ...all, direction: "reverse" }),
      [p],
      0.121777,
      [-0.25, -0.25, -0.25, -0.25],
    );
    await expectTerm(klDivergence({ ...all, direction: "symmetric" }), [p], 0.114109);
  });

  it("gives the derivative in logit space when it renormalises over all tokens", async () => {
    const term = klDivergence({ candidates: "renormalize", reference: [q] });
    await expectTerm(term, [p], 0.10644, [0.145425, 0.022764, -0.065917, -0.102273]);
  });

  it("computes the Jensen-Shannon divergence", async () => {
    await expectTerm(jensenShannon(all), [p], 0.027866, [0.041528, 0.013052, -0.011778, -0.027981]);
  });

  it("computes the entropy, normalised and tempered", async () => {
    const bits = { candidates: "all", mode: "minimize" } as const;
    await expectTerm(entropy(bits), [p], 1.279854, [-0.033484, 0.061192, 0.121888, 0.130259]);
    await expectTerm(entropy({ ...bits, normalize: true }), [p], 0.92322);
    await expectTerm(
      entropy({ ...bits, temperature: 0.5 }),
      [p],
      1.078477,
      [-0.479859, 0.075298, 0.249714, 0.154848],
    );
    await expectTerm(
      entropy({ ...bits, temperature: 2 }),
      [p],
      1.355752,
      [-0.037918, -0.01257, 0.01306, 0.037429],
    );
  });

  it("reports the entropy itself whichever way it is trained", async () => {
    const result = await evaluate(entropy({ candidates: "all", mode: "maximize" }), batchOf([[p]]));
    expect(result.value).toBeCloseTo(-1.279854, 6);
    expect(result.metrics!["entropy"]).toBeCloseTo(1.279854, 6);
  });
});

describe("two candidates of four", () => {
  const two = p.slice(0, 2);
  const reference = [q.slice(0, 2)];

  it("puts the rest into a bucket", async () => {
    await expectTerm(klDivergence({ reference }), [two], 0.08945, [0.392332, 0.207944]);
    await expectTerm(
      klDivergence({ reference, direction: "reverse" }),
      [two],
      0.092332,
      [0.416667, 0.25],
    );
    await expectTerm(entropy({ mode: "minimize" }), [two], 1.0889, [-0.115073, 0]);
    await expectTerm(jensenShannon({ reference }), [two], 0.022504, [0.099064, 0.056204]);
  });

  it("or renormalises over the two", async () => {
    const candidates = "renormalize";
    await expectTerm(
      klDivergence({ reference, candidates }),
      [two],
      0.010239,
      [0.070453, -0.070453],
    );
    await expectTerm(
      entropy({ mode: "minimize", candidates }),
      [two],
      0.682908,
      [-0.070453, 0.070453],
    );
  });

  it("is a lower bound of the divergence over all tokens", () =>
    fc.assert(
      fc.asyncProperty(
        distribution(6),
        distribution(6),
        fc.integer({ min: 2, max: 5 }),
        async (a, b, width) => {
          const full = await evaluate(
            klDivergence({ candidates: "all", reference: [b] }),
            batchOf([[a]]),
          );
          const term = klDivergence({ reference: [b.slice(0, width)] });
          const bucketed = await evaluate(term, batchOf([[a.slice(0, width)]]));
          expect(bucketed.value).toBeLessThanOrEqual(full.value + 1e-9);
          expect(bucketed.value).toBeGreaterThanOrEqual(-1e-9);
        },
      ),
    ));

  it("stays finite when nothing is left for the bucket", async () => {
    for (const term of [
      klDivergence({ reference: [q] }),
      entropy({ mode: "maximize" }),
      jensenShannon({ reference: [q] }),
    ]) {
      const { value, gradients } = await evaluate(term, batchOf([[p]]));
      expect(Number.isFinite(value)).toBe(true);
      expect(gradients[0]!.every(Number.isFinite)).toBe(true);
    }
  });

  it("leaves out candidates that do not exist, and those without probability", async () => {
    const shown = klDivergence({
      reference: [[...q.slice(0, 2), Number.NaN]],
      exists: [[1, 1, 0]],
    });
    await expectTerm(shown, [[...two, -7]], 0.08945, [0.392332, 0.207944, 0]);
    const never = entropy({ mode: "minimize", candidates: "renormalize" });
    await expectTerm(
      never,
      [[...two, Number.NEGATIVE_INFINITY]],
      0.682908,
      [-0.070453, 0.070453, 0],
    );
  });
});

describe("sums of numbers", () => {
  it("computes l1, l2 and their mixture", async () => {
    await expectTerm(l1(), x, 3.6, [-1, -1, -1]);
    await expectTerm(l1({ reduction: "mean" }), x, 1.2);
    await expectTerm(l1({ target: "probs" }), x, 1.30629, x.map(Math.exp));
    await expectTerm(
      l2(),
      x,
      6.74,
      x.map((value) => 2 * value),
    );
    await expectTerm(l2({ reduction: "mean" }), x, 2.246667);
    await expectTerm(l2({ center: "mean" }), x, 2.42, [2.2, 0, -2.2]);
    await expectTerm(elasticNet(), x, 5.17, [-0.6, -1.7, -2.8]);
  });

  it("keeps a gradient beyond the clip", async () => {
    await expectTerm(l2({ clip: 1 }), [-3], 5, [-2]);
  });

  it("computes distances between two outputs", async () => {
    await expectTerm(consistency({ pair: [y] }), x, 0.04, [0.133333, -0.133333, 0.133333]);
    await expectTerm(
      consistency({ pair: [y], metric: "l1" }),
      x,
      0.2,
      [0.333333, -0.333333, 0.333333],
    );
    await expectTerm(
      consistency({ pair: [y], metric: "cosine" }),
      x,
      0.007621,
      [0.027929, -0.03451, 0.016791],
    );
  });

  it("holds gradients and outputs at a size", async () => {
    const square = (values: Float64Array): { value: number; gradient: Float64Array } => ({
      value: values.reduce((sum, value) => sum + value * value, 0),
      gradient: values.map((value) => 2 * value),
    });
    await expectTerm(
      gradientPenalty({ of: square }),
      x,
      17.575396,
      [-0.645926, -7.751109, -14.856292],
    );
    await expectTerm(outputMagnitude(), x, 0.24889);
    await expectTerm(outputMagnitude({ size: "norm" }), x, 2.547698);
  });

  it("refuses a linear function, which has nothing to train, and stays finite where there is no gradient", async () => {
    const linear = gradientPenalty({
      of: (values) => ({ value: 0, gradient: values.map(() => 1) }),
    });
    const result = await evaluate(linear, batchOf([x, y]));
    expect(result.metrics).toEqual({ flat: 2 });
    const nothing = gradientPenalty({
      of: (values) => ({ value: 0, gradient: values.map(() => 0) }),
    });
    expect((await evaluate(nothing, batchOf([x]))).gradients[0]).toEqual(new Float64Array(3));
  });

  it("computes how far rows of a matrix are from orthogonal", () => {
    const matrix = Float64Array.from([1, 0, 0, 1, 1, 0, 0, 2, 1]);
    const measure = (
      mode: "soft" | "hard" | "spectral",
      normalize: boolean,
    ): [number, number[]] => {
      const gradient = new Float64Array(9);
      const value = matrixOrthogonality(matrix, 3, { mode, normalize, center: false }, gradient);
      return [value, [...gradient]];
    };
    for (const mode of ["soft", "hard", "spectral"] as const) {
      expect(measure(mode, true)[0]).toBeCloseTo(1.8, 9);
    }
    for (const [slot, expected] of [0, 2, 0, 0.2, -0.2, 0.8, 0.8, 0.16, -0.32].entries()) {
      expect(measure("soft", true)[1][slot]).toBeCloseTo(expected, 9);
    }
    expect(measure("soft", false)).toEqual([10, [4, 4, 0, 4, 16, 8, 8, 8, 0]]);
    expect(measure("hard", false)[0]).toBe(27);
    expect(measure("spectral", false)[0]).toBe(35);
  });
});

describe("estimates on sampled tokens", () => {
  it("computes k2 and k3, and reports k1", async () => {
    await expectTerm(klEstimate({ reference: [y] }), x, 0.02, [0.066667, -0.066667, 0.066667]);
    const k3 = klEstimate({ reference: [y], estimator: "k3" });
    await expectTerm(k3, x, 0.019621, [0.060423, -0.073801, 0.060423]);
    const { metrics } = await evaluate(k3, batchOf([x]));
    expect(metrics!["k1"]).toBeCloseTo(0.066667, 6);
  });

  it("holds the exponential of abandoned tokens, counts them and keeps their gradient", async () => {
    const term = klEstimate({ reference: [[0]], estimator: "k3" });
    const { gradients, metrics } = await evaluate(term, batchOf([[-800]]));
    expect(gradients[0]![0]).toBeCloseTo(1 - Math.exp(20), -3);
    expect(metrics!["capped"]).toBe(1);
  });

  it("has the promised mean gradients on a small softmax", async () => {
    // Exact expectations over all tokens: gradients by logits of sum_x P(x) * slope(x) * dlogP(x).
    const kl = (logits: readonly number[], forward: boolean): number => {
      const model = softmax(logits);
      return forward
        ? model.reduce((sum, prob, i) => sum + prob * (Math.log(prob) - q[i]!), 0)
        : model.reduce((sum, prob, i) => sum + Math.exp(q[i]!) * (q[i]! - Math.log(prob)), 0);
    };
    const entropyOf = (logits: readonly number[]): number =>
      -softmax(logits).reduce((sum, prob) => sum + prob * Math.log(prob), 0);
    const slopesOf = async (term: (token: number) => Term): Promise<number[]> =>
      Promise.all(
        p.map(
          async (logprob, token) =>
            (await evaluate(term(token), batchOf([[logprob]]))).gradients[0]![0]!,
        ),
      );
    const meanGradient = (slopes: readonly number[]): number[] => {
      const model = p.map(Math.exp);
      return model.map((prob, logit) =>
        model.reduce(
          (sum, at, token) => sum + at * slopes[token]! * ((token === logit ? 1 : 0) - prob),
          0,
        ),
      );
    };
    const expectGradient = (
      actual: readonly number[],
      of: (logits: readonly number[]) => number,
      sign = 1,
    ): void => {
      for (const [logit, value] of actual.entries()) {
        const moved = (by: number): number =>
          of(p.map((entry, at) => (at === logit ? entry + by : entry)));
        expect(value).toBeCloseTo((sign * (moved(1e-5) - moved(-1e-5))) / 2e-5, 6);
      }
    };
    const k2 = await slopesOf((token) => klEstimate({ reference: [[q[token]!]] }));
    expectGradient(meanGradient(k2), (logits) => kl(logits, true));
    const score = await slopesOf((token) =>
      klEstimate({ reference: [[q[token]!]], estimator: "score" }),
    );
    expectGradient(meanGradient(score), (logits) => kl(logits, true));
    const k3 = await slopesOf((token) => klEstimate({ reference: [[q[token]!]], estimator: "k3" }));
    expectGradient(meanGradient(k3), (logits) => kl(logits, false));
    const bonus = await slopesOf(() => entropyEstimate({ mode: "maximize", baseline: -1 }));
    expectGradient(meanGradient(bonus), entropyOf, -1);
  });

  it("weighs tokens of an older policy by a bounded ratio", async () => {
    const term = klEstimate({ reference: [[-1]], behavior: [[-3]], maxRatio: 4, reduction: "sum" });
    await expectTerm(term, [-2], 0.5 * Math.E, [-Math.E]);
    await expectTerm(klEstimate({ reference: [[-1]], behavior: [[-30]] }), [-2], 2, [-4]);
  });
});

const numbers = (width: number): fc.Arbitrary<number[]> =>
  fc.array(fc.double({ min: -4, max: -0.05, noNaN: true }), { minLength: width, maxLength: width });

function distribution(width: number): fc.Arbitrary<number[]> {
  return numbers(width).map((logits) => softmax(logits).map(Math.log));
}

function softmax(logits: readonly number[]): number[] {
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
  return logits.map((logit) => Math.exp(logit) / total);
}

interface Draw {
  readonly chosen: number[][];
  readonly other: number[][];
  readonly candidates: number[][][];
  readonly otherCandidates: number[][][];
}

const draws: fc.Arbitrary<Draw> = fc
  .record({
    chosen: fc.tuple(numbers(3), numbers(2)),
    other: fc.tuple(numbers(3), numbers(2)),
    candidates: fc.tuple(fc.tuple(distribution(5), distribution(5)), fc.tuple(distribution(5))),
    otherCandidates: fc.tuple(
      fc.tuple(distribution(5), distribution(5)),
      fc.tuple(distribution(5)),
    ),
  })
  .map(({ candidates, otherCandidates, ...rest }) => ({
    ...rest,
    candidates: candidates.map((rows) => rows.map((row) => row.slice(0, 3))),
    otherCandidates: otherCandidates.map((rows) => rows.map((row) => row.slice(0, 3))),
  }));

const flat = (rows: readonly (readonly number[])[][]): SideSource => rows.map((row) => row.flat());

/** Every term, with whether it looks at candidates. */
const everyTerm: Readonly<Record<string, (draw: Draw) => [term: Term, candidates: boolean]>> = {
  l1: () => [l1(), false],
  "l1 of probabilities": () => [l1({ target: "probs", reduction: "mean" }), false],
  l2: () => [l2({ reduction: "mean-per-datum" }), false],
  "l2 around the mean, clipped": () => [l2({ center: "mean", clip: 0.7 }), false],
  "l2 of probabilities around the mean": () => [l2({ center: "mean", target: "probs" }), true],
  "elastic net": () => [elasticNet({ l1Ratio: 0.3 }), true],
  "forward kl, bucket": (d) => [klDivergence({ reference: flat(d.otherCandidates) }), true],
  "reverse kl, bucket": (d) => [
    klDivergence({ reference: flat(d.otherCandidates), direction: "reverse" }),
    true,
  ],
  "symmetric kl, renormalised": (d) => [
    klDivergence({
      reference: flat(d.otherCandidates),
      direction: "symmetric",
      candidates: "renormalize",
    }),
    true,
  ],
  "forward kl, all": (d) => [
    klDivergence({ reference: flat(d.otherCandidates), candidates: "all" }),
    true,
  ],
  "Jensen-Shannon, bucket": (d) => [jensenShannon({ reference: flat(d.otherCandidates) }), true],
  "Jensen-Shannon, renormalised": (d) => [
    jensenShannon({ reference: flat(d.otherCandidates), candidates: "renormalize" }),
    true,
  ],
  "entropy, bucket": () => [entropy({ mode: "maximize", normalize: true }), true],
  "entropy, tempered": () => [
    entropy({ mode: "minimize", candidates: "renormalize", temperature: 0.6 }),
    true,
  ],
  k2: (d) => [klEstimate({ reference: d.other }), false],
  k3: (d) => [klEstimate({ reference: d.other, estimator: "k3", reduction: "sum" }), false],
  "entropy estimate": () => [entropyEstimate({ mode: "maximize", baseline: -1.3 }), false],
  anchor: (d) => [anchor({ reference: d.other }), false],
  "anchor, l1": (d) => [anchor({ reference: flat(d.otherCandidates), norm: "l1" }), true],
  "consistency, mse": (d) => [consistency({ pair: d.other }), false],
  "consistency, l1": (d) => [consistency({ pair: d.other, metric: "l1" }), false],
  "consistency, cosine": (d) => [consistency({ pair: d.other, metric: "cosine" }), false],
  "consistency, kl": (d) => [consistency({ pair: flat(d.otherCandidates), metric: "kl" }), true],
  orthogonality: () => [orthogonality(), true],
  "orthogonality, spectral": () => [orthogonality({ mode: "spectral", normalize: false }), true],
  "gradient penalty": () => [gradientPenalty({ of: cubic, targetNorm: 0.5 }), false],
  "gradient penalty between two": (d) => [
    gradientPenalty({ of: cubic, between: d.other, seed: 3 }),
    false,
  ],
  "output magnitude": () => [outputMagnitude({ target: 0.3 }), false],
  "cross entropy": () => [crossEntropy(), true],
  "importance sampling": (d) => [
    importanceSampling({ logprobs: d.other, advantages: d.chosen }),
    false,
  ],
  ppo: (d) => [ppo({ logprobs: d.other, advantages: d.chosen }), false],
  dro: (d) => [dro({ logprobs: d.other, advantages: d.chosen, beta: 0.2 }), false],
};

/** Terms in which a part of the value is held constant, so that its differences are not its gradient. */
const heldConstant: Readonly<Record<string, (draw: Draw) => Term>> = {
  score: (d) => klEstimate({ reference: d.other, estimator: "score", reduction: "sum" }),
  cispo: (d) => cispo({ logprobs: d.other, advantages: d.chosen }),
};

function cubic(values: Float64Array): { value: number; gradient: Float64Array } {
  return {
    value: values.reduce((sum, value) => sum + value ** 3, 0),
    gradient: values.map((value) => 3 * value ** 2),
  };
}

/** Terms that stop to pull where they have pulled far enough. */
const canBeFlat: ReadonlySet<string> = new Set(["ppo"]);

describe("gradients", () => {
  for (const [name, make] of Object.entries(everyTerm)) {
    it(`of ${name} agree with differences of the value`, () =>
      fc.assert(
        fc.asyncProperty(draws, async (draw) => {
          const [term, candidates] = make(draw);
          const batch = batchOf(candidates ? draw.candidates : draw.chosen);
          const { value, gradients } = await evaluate(term, batch);
          const numeric = await numericGradients(term, batch);
          for (const [datum, gradient] of gradients.entries()) {
            for (const [slot, entry] of gradient.entries()) {
              const expected = numeric[datum]![slot]!;
              if (Number.isNaN(expected)) continue;
              expect(Math.abs(entry - expected)).toBeLessThan(
                2e-4 * Math.max(1, Math.abs(expected)),
              );
            }
          }
          const moving = gradients.some((gradient) => gradient.some((entry) => entry !== 0));
          if (Math.abs(value) > 1e-9 && !canBeFlat.has(name)) {
            expect(moving, "a value that has no gradient").toBe(true);
          }
        }),
        { numRuns: 25 },
      ));
  }

  it("of terms with a constant part are those of their definition", () =>
    fc.assert(
      fc.asyncProperty(draws, async (draw) => {
        const drift = draw.chosen.map((row, datum) =>
          row.map((value, at) => value - draw.other[datum]![at]!),
        );
        const score = await evaluate(heldConstant["score"]!(draw), batchOf(draw.chosen));
        const clipped = await evaluate(heldConstant["cispo"]!(draw), batchOf(draw.chosen));
        for (const [datum, row] of drift.entries()) {
          for (const [at, value] of row.entries()) {
            expect(score.gradients[datum]![at]).toBeCloseTo(value, 9);
            const coefficient = Math.min(Math.exp(value), 4) * draw.chosen[datum]![at]!;
            expect(clipped.gradients[datum]![at]).toBeCloseTo(-coefficient, 9);
          }
        }
      }),
    ));

  it("reach both outputs of a pair, unless one is held", async () => {
    const rows = [x, y];
    const both = await evaluate(pairedConsistency({ pairs: [[0, 1]] }), batchOf(rows));
    const numeric = await numericGradients(pairedConsistency({ pairs: [[0, 1]] }), batchOf(rows));
    expect(both.value).toBeCloseTo(0.04, 9);
    for (const datum of [0, 1]) {
      for (const at of [0, 1, 2])
        expect(both.gradients[datum]![at]).toBeCloseTo(numeric[datum]![at]!, 6);
    }
    const held = await evaluate(
      pairedConsistency({ pairs: [[0, 1]], stop: "second" }),
      batchOf(rows),
    );
    expect(held.gradients[0]).toEqual(both.gradients[0]);
    expect(held.gradients[1]).toEqual(new Float64Array(3));
  });
});

describe("the positions of a term", () => {
  it("counts positions with a weight only", async () => {
    const counted = await evaluate(l2({ reduction: "mean" }), batchOf([[-1, -2]]));
    const padded = await evaluate(l2({ reduction: "mean" }), batchOf([[-9, -1, -2]], [[0, 1, 1]]));
    expect(padded.value).toBe(counted.value);
    expect([...padded.gradients[0]!]).toEqual([0, ...counted.gradients[0]!]);
  });

  it("is 0 without any position that counts, not NaN", async () => {
    for (const reduction of ["sum", "mean", "mean-per-datum"] as const) {
      const result = await evaluate(l2({ reduction, center: "mean" }), batchOf([[-1]], [[0]]));
      expect(result).toMatchObject({ value: 0, gradients: [new Float64Array(1)] });
    }
  });

  it("takes a reference per datum", async () => {
    const term = (a: number[], b: number[]): Term => anchor({ reference: [a, b] });
    const straight = await evaluate(term(x, y), batchOf([y, x]));
    const together = await evaluate(term(y, x), batchOf([x, y]));
    const alone = await evaluate(term(y, x), batchOf([y, x]));
    expect(together.value).toBeCloseTo(straight.value, 12);
    expect(alone.value).not.toBeCloseTo(straight.value, 6);
  });

  it("refuses single tokens where a distribution is needed, and candidates where single tokens are", async () => {
    const refuse = async (term: Term, rows: Rows, message: RegExp): Promise<void> => {
      await expect(evaluate(term, batchOf([rows]))).rejects.toThrow(message);
    };
    await refuse(klDivergence({ reference: [y] }), x, /needs at least two candidates/);
    await refuse(entropy({ mode: "maximize" }), x, /needs at least two candidates/);
    await refuse(consistency({ pair: [y], metric: "kl" }), x, /needs at least two candidates/);
    await refuse(orthogonality(), x, /same two or more candidate tokens/);
    await refuse(klEstimate({ reference: [p] }), [p], /one token per position/);
  });

  it("refuses side data of another shape, naming the datum and both lengths", async () => {
    const term = anchor({ reference: [y, [1]] });
    await expect(evaluate(term, batchOf([x, x]))).rejects.toThrow(
      /reference\[1\]: must have 3 entries .* got 1/,
    );
    await expect(evaluate(anchor({ reference: [y] }), batchOf([x, x]))).rejects.toThrow(
      /one list per datum \(2\), got 1/,
    );
  });

  it("refuses meaningless options", () => {
    expect(() => klEstimate({ reference: [], estimator: "k1" as "k2" })).toThrow(
      /0 in expectation/,
    );
    expect(() => entropy({ mode: "bonus" as "maximize" })).toThrow(/minimize or maximize/);
    expect(() => entropy({ mode: "maximize", temperature: 2 })).toThrow(/bucket has no logit/);
    expect(() => elasticNet({ l1Ratio: 2 })).toThrow(/between 0 and 1/);
    expect(() => l2({ clip: 0 })).toThrow(/above 0/);
    const none = l1({ reduction: "none" as "sum" });
    expect(() => none.evaluate(batchOf([x]), undefined)).toThrow(/reduction: must be one of/);
  });
});
