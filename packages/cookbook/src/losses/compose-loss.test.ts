import { TensorData, type CustomLoss } from "tinker-ts";
import { describe, expect, it } from "vitest";
import { datumFor, type Rows } from "../../test/support/loss-batches.js";
import {
  anchor,
  candidateExample,
  composeLoss,
  crossEntropy,
  l2,
  ramp,
  term,
  type LossParts,
  type TermEvent,
} from "./index.js";

const rows: Rows[] = [
  [-0.1, -1.2, -2.3],
  [-0.5, -0.7],
];

async function lossOf(parts: LossParts, step = 0): Promise<CustomLoss> {
  const data = rows.map((row) => datumFor(row));
  const logprobs = rows.map((row) => TensorData.fromTypedArray(Float64Array.from(row.flat())));
  return composeLoss(parts).at(step)(data, logprobs);
}

describe("a composed loss", () => {
  it("adds the parts and their gradients", async () => {
    const { loss, gradients } = await lossOf({
      base: crossEntropy(),
      terms: [
        { name: "pull", term: l2(), weight: 0.5 },
        { name: "more", term: l2(), weight: 0.25 },
      ],
    });
    expect(loss).toBeCloseTo(4.8 + 0.75 * 7.48, 5);
    expect(gradients[1]![0]).toBeCloseTo(-1 + 0.75 * 2 * -0.5, 6);
  });

  it("reports value, contribution, norm, share and direction of every term under its name", async () => {
    const { metrics } = await lossOf({
      base: crossEntropy(),
      terms: [{ name: "pull", term: l2(), weight: 2 }],
    });
    expect(metrics).toMatchObject({
      "loss/positions": 5,
      "reg/pull/weight": 2,
    });
    expect(metrics!["loss/base"]).toBeCloseTo(4.8, 6);
    expect(metrics!["loss/total"]).toBeCloseTo(4.8 + 2 * 7.48, 5);
    expect(metrics!["reg/pull/value"]).toBeCloseTo(7.48, 5);
    expect(metrics!["reg/pull/contribution"]).toBeCloseTo(14.96, 5);
    expect(metrics!["reg/pull/grad_norm"]).toBeCloseTo(2 * Math.sqrt(7.48), 5);
    const total = Math.hypot(...rows.flat().map((x) => -1 + 4 * Number(x)));
    expect(metrics!["loss/grad_norm"]).toBeCloseTo(total, 5);
    expect(metrics!["reg/pull/share"]).toBeCloseTo((4 * Math.sqrt(7.48)) / total, 5);
    expect(metrics!["reg/pull/cosine"]).toBeCloseTo(4.8 / (Math.sqrt(7.48) * Math.sqrt(5)), 5);
  });

  it("reports a term of weight 0 and leaves it out of the gradient", async () => {
    const plain = await lossOf({ base: crossEntropy() });
    const watched = await lossOf({
      base: crossEntropy(),
      terms: [{ name: "pull", term: l2(), weight: 0 }],
    });
    expect(watched.gradients).toEqual(plain.gradients);
    expect(watched.loss).toBe(plain.loss);
    expect(watched.metrics!["reg/pull/value"]).toBeCloseTo(7.48, 5);
  });

  it("takes weights from a schedule at the current step", async () => {
    const weight = ramp({ from: 0, to: 1, steps: 10, start: 5 });
    const weightAt = async (step: number): Promise<number | undefined> =>
      (await lossOf({ terms: [{ name: "pull", term: l2(), weight }] }, step)).metrics![
        "reg/pull/weight"
      ];
    expect(await Promise.all([0, 5, 10, 15, 99].map(weightAt))).toEqual([0, 0, 0.5, 1, 1]);
    expect(ramp({ from: 1, to: 0, steps: 4, shape: "cosine" })(2)).toBeCloseTo(0.5, 12);
  });

  it("does not depend on the order of its terms", async () => {
    const terms = [
      { name: "a", term: l2(), weight: 0.3 },
      { name: "b", term: l2({ center: "mean" }), weight: -0.2 },
    ];
    const forwards = await lossOf({ terms });
    const backwards = await lossOf({ terms: terms.toReversed() });
    expect(backwards.loss).toBeCloseTo(forwards.loss, 9);
  });

  it("evaluates every part once, and waits for all of them before", async () => {
    const calls: string[] = [];
    const part = (name: string) => ({
      name,
      term: {
        prepare: async () => void calls.push(`prepare ${name}`),
        evaluate: (batch: Parameters<ReturnType<typeof l2>["evaluate"]>[0]) => {
          calls.push(`evaluate ${name}`);
          return l2().evaluate(batch, undefined);
        },
      },
    });
    await lossOf({ terms: [part("a"), part("b")] });
    expect(calls).toEqual(["prepare a", "prepare b", "evaluate a", "evaluate b"]);
  });

  it("fails with the name of the part, and aborts the other parts", async () => {
    let stopped = false;
    const failing = lossOf({
      terms: [
        {
          name: "judge",
          term: anchor({ reference: () => Promise.reject(new Error("judge is away")) }),
        },
        {
          name: "slow",
          term: anchor({
            reference: (_, { signal }) =>
              new Promise((_resolve, reject) => {
                signal.addEventListener("abort", () => {
                  stopped = true;
                  reject(new Error("stopped"));
                });
              }),
          }),
        },
      ],
    });
    await expect(failing).rejects.toThrow("terms.judge: judge is away");
    expect(stopped).toBe(true);
  });

  it("refuses non-finite values, naming part, datum and position", async () => {
    const broken = term((batch) => ({
      value: 1,
      gradients: batch.logprobs.map(({ values }, datum) =>
        values.map((_, at) => (datum === 1 && at === 1 ? Number.NaN : 0)),
      ),
    }));
    await expect(lossOf({ terms: [{ name: "odd", term: broken }] })).rejects.toThrow(
      /terms\.odd: gradients\[1\]: is NaN at position 1/,
    );
    const infinite = term((batch) => ({
      ...l2().evaluate(batch, undefined),
      value: Number.POSITIVE_INFINITY,
    }));
    await expect(lossOf({ terms: [{ name: "odd", term: infinite }] })).rejects.toThrow(
      /value: must be finite/,
    );
    const list = term((batch) => ({
      ...l2().evaluate(batch, undefined),
      value: [1] as unknown as number,
    }));
    await expect(lossOf({ terms: [{ name: "odd", term: list }] })).rejects.toThrow(
      /must be one number/,
    );
  });

  it("reports every part to a listener in pairs, and survives a listener that throws", async () => {
    const events: TermEvent[] = [];
    await lossOf({
      base: crossEntropy(),
      terms: [{ name: "pull", term: l2() }],
      onTerm: (event) => {
        events.push(event);
        throw new Error("a listener's own trouble");
      },
    });
    expect(events.map(({ type, name }) => `${type} ${name}`)).toEqual([
      "start base",
      "stop base",
      "start pull",
      "stop pull",
    ]);
  });

  it("refuses names that are empty or used twice, no parts, and weights that are not numbers", () => {
    const pull = { name: "pull", term: l2() };
    expect(() => composeLoss({})).toThrow(/needs at least one/);
    expect(() => composeLoss({ terms: [pull, pull] })).toThrow(/"pull" is used twice/);
    expect(() => composeLoss({ terms: [{ ...pull, name: "" }] })).toThrow(/must not be empty/);
    expect(() => composeLoss({ terms: [{ ...pull, weight: Number.NaN }] }).at(0)).toThrow(
      /finite number, got NaN/,
    );
    expect(() => composeLoss({ terms: [pull] }).at(-1)).toThrow(/step/);
  });
});

describe("candidates of a reference", () => {
  const topk = [
    null,
    [
      [7, -0.1],
      [8, -2.5],
    ],
    [[9, -0.3]],
  ] as const;

  it("become targets, with the reference's numbers beside them", () => {
    const { datum, reference, exists } = candidateExample({ tokens: [5, 7, 4], topk });
    expect([...datum.modelInput.toInts()]).toEqual([5, 7]);
    expect(datum.lossFnInputs["target_tokens"]!.toList()).toEqual([7, 8, 9, 0]);
    expect([...reference]).toEqual([-0.1, -2.5, -0.3, 0]);
    expect([...exists]).toEqual([1, 1, 1, 0]);
  });

  it("hold the actual token if its log-probability is known", () => {
    const { datum, reference } = candidateExample({
      tokens: [5, 7, 4],
      topk,
      logprobs: [null, -0.1, -6],
      weights: [0, 0, 1],
    });
    expect(datum.lossFnInputs["target_tokens"]!.toList()).toEqual([7, 8, 9, 4]);
    expect(datum.lossFnInputs["weights"]!.toList()).toEqual([0, 0, 1, 1]);
    expect(reference[3]).toBe(-6);
  });

  it("must fit the tokens", () => {
    expect(() => candidateExample({ tokens: [5, 7], topk })).toThrow(
      /topk: must have one entry per token \(2\), got 3/,
    );
    expect(() => candidateExample({ tokens: [5], topk: [null] })).toThrow(/at least two/);
  });
});
