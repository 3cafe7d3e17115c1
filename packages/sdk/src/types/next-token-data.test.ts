import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { policyDatum, supervisedDatum } from "./next-token-data.js";

const token = fc.integer({ min: 0, max: 1000 });
const tokens = (minLength: number) => fc.array(token, { minLength, maxLength: 8 });

const lists = (datum: ReturnType<typeof supervisedDatum>) =>
  Object.fromEntries(
    Object.entries(datum.lossFnInputs).map(([name, tensor]) => [name, tensor.toList()]),
  );

describe("a supervised datum", () => {
  it("reads the prompt and learns the completion", () => {
    const datum = supervisedDatum([1, 2, 3], [4, 5]);
    expect([...datum.modelInput.toInts()]).toEqual([1, 2, 3, 4]);
    expect(datum.modelInput.chunks).toHaveLength(1);
    expect(lists(datum)).toEqual({ target_tokens: [2, 3, 4, 5], weights: [0, 0, 1, 1] });
  });

  it("takes a weight for each token, and a whole conversation with its mask", () => {
    expect(lists(supervisedDatum([1], [2, 3], { weights: [0.5, 2] }))["weights"]).toEqual([0.5, 2]);
    const mask = Uint8Array.of(0, 0, 1, 1, 0);
    const whole = supervisedDatum([], [1, 2, 3, 4, 5], { weights: mask });
    expect(lists(whole)).toEqual({ target_tokens: [2, 3, 4, 5], weights: [0, 1, 1, 0] });
  });

  it("learns nothing at pictures", () => {
    const data = Uint8Array.of(1);
    const image = { type: "image", data, format: "png", expectedTokens: 3 } as const;
    const datum = supervisedDatum({ chunks: [{ tokens: [7] }, image] }, [8, 9]);
    expect(datum.modelInput.length).toBe(5);
    expect(lists(datum)).toEqual({ target_tokens: [0, 0, 0, 8, 9], weights: [0, 0, 0, 1, 1] });
  });

  it("has one target and one weight per position for any lengths", () => {
    fc.assert(
      fc.property(tokens(1), tokens(1), (prompt, completion) => {
        const datum = supervisedDatum(prompt, completion);
        const { target_tokens: targets = [], weights = [] } = lists(datum);
        const input = [...datum.modelInput.toInts()];
        expect(targets).toHaveLength(input.length);
        expect([input[0], ...targets]).toEqual([...prompt, ...completion]);
        expect([...input, targets.at(-1)]).toEqual([...prompt, ...completion]);
        expect(weights.filter((weight) => weight === 1)).toHaveLength(completion.length);
      }),
    );
  });

  it.each([
    ["no completion", [1], [], {}],
    ["a lone token", [], [1], {}],
    ["a weight too few", [1], [2, 3], { weights: [1] }],
  ])("refuses %s", (_, prompt, completion, options) => {
    expect(() => supervisedDatum(prompt, completion, options)).toThrowError(
      expect.objectContaining({ name: "ArgumentError" }) as Error,
    );
  });
});

describe("a policy datum", () => {
  const sequence = { tokens: Int32Array.of(4, 5), logprobs: Float64Array.of(-0.5, -0.25) };

  it("pushes every sampled token by the advantage and leaves the prompt alone", () => {
    const datum = policyDatum([1, 2, 3], sequence, -2);
    expect([...datum.modelInput.toInts()]).toEqual([1, 2, 3, 4]);
    expect(lists(datum)).toEqual({
      target_tokens: [2, 3, 4, 5],
      logprobs: [0, 0, -0.5, -0.25],
      advantages: [0, 0, -2, -2],
    });
  });

  it("takes an advantage for each token and the logprobs of the prompt", () => {
    const promptLogprobs = [null, -1, -3];
    const { logprobs, advantages } = lists(
      policyDatum([1, 2, 3], sequence, [1, 0.5], { promptLogprobs }),
    );
    expect(logprobs).toEqual([-1, -3, -0.5, -0.25]);
    expect(advantages).toEqual([0, 0, 1, 0.5]);
  });

  it("refuses a sequence without its logprobs, and lists of other lengths", () => {
    expect(() => policyDatum([1], { tokens: [2], logprobs: null }, 1)).toThrow(/logprobs/);
    expect(() => policyDatum([1], sequence, [1])).toThrow(/advantage/);
    expect(() => policyDatum([1], sequence, 1, { promptLogprobs: [null, 0] })).toThrow(/promptLog/);
  });
});
