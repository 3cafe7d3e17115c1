import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { at } from "../util/arrays.js";
import { RandomStream } from "../util/random.js";
import { argmax, largest, pickToken } from "./pick-token.js";

const logitLists = fc
  .array(fc.float({ min: -8, max: 8, noNaN: true }), { minLength: 1, maxLength: 30 })
  .map((list) => Float32Array.from(list));

function softmax(logits: Float32Array): Float32Array {
  const top = Math.max(...logits);
  const weights = [...logits].map((logit) => Math.exp(logit - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return Float32Array.from(weights, (weight) => weight / total);
}

/** Places by falling probability, as in the definition of the filters. */
function ranked(probabilities: Float32Array): number[] {
  return [...probabilities.keys()].toSorted(
    (a, b) => at(probabilities, b) - at(probabilities, a) || a - b,
  );
}

const plain = { temperature: 1, topK: 0, topP: 1 };

describe("pickToken", () => {
  it("draws tokens with their probabilities", () => {
    const logits = Float32Array.of(0, 1, 2, -1);
    const probabilities = softmax(logits);
    const random = new RandomStream(1);
    const counts = [0, 0, 0, 0];
    const draws = 40_000;
    for (let i = 0; i < draws; i++) {
      const token = pickToken(logits, probabilities, plain, () => random.next());
      counts[token] = (counts[token] ?? 0) + 1;
    }
    for (const [token, count] of counts.entries()) {
      expect(Math.abs(count / draws - at(probabilities, token))).toBeLessThan(0.01);
    }
  });

  it("takes the most likely token at temperature 0 and with topK 1", () => {
    fc.assert(
      fc.property(
        logitLists,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (logits, draw) => {
          const probabilities = softmax(logits);
          const greedy = { temperature: 0, topK: 0, topP: 1 };
          expect(pickToken(logits, probabilities, greedy, () => draw)).toBe(argmax(logits));
          const topOne = { temperature: 1, topK: 1, topP: 1 };
          expect(pickToken(logits, probabilities, topOne, () => draw)).toBe(argmax(logits));
        },
      ),
    );
  });

  it("draws among the topK most likely tokens only", () => {
    const numbers = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(logitLists, fc.integer({ min: 2, max: 40 }), numbers, (logits, topK, draw) => {
        const probabilities = softmax(logits);
        const token = pickToken(
          logits,
          probabilities,
          { temperature: 1, topK, topP: 1 },
          () => draw,
        );
        expect(ranked(probabilities).slice(0, topK)).toContain(token);
      }),
    );
  });

  it("draws among the smallest set that has probability topP", () => {
    const numbers = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(
        logitLists,
        fc.double({ min: 0.05, max: 0.99, noNaN: true }),
        numbers,
        (logits, topP, draw) => {
          const probabilities = softmax(logits);
          const token = pickToken(
            logits,
            probabilities,
            { temperature: 1, topK: 0, topP },
            () => draw,
          );
          const order = ranked(probabilities);
          const before = order.slice(0, order.indexOf(token));
          const massBefore = before.reduce((sum, other) => sum + at(probabilities, other), 0);
          expect(massBefore).toBeLessThan(topP + 1e-6);
        },
      ),
    );
  });

  it("keeps the token that reaches topP", () => {
    const logits = Float32Array.of(0.5, 0.3, 0.2).map(Math.log);
    const probabilities = softmax(logits);
    const drawn = (topP: number, draw: number): number =>
      pickToken(logits, probabilities, { temperature: 1, topK: 0, topP }, () => draw);
    expect(drawn(0.6, 0.99)).toBe(1);
    expect(drawn(0.4, 0.99)).toBe(0);
    expect(drawn(0.9, 0.99)).toBe(2);
  });

  it("reaches every token of a filtered set, and the last one at the end of the range", () => {
    const logits = Float32Array.of(1, 1, 1, -20);
    const probabilities = softmax(logits);
    const options = { temperature: 1, topK: 3, topP: 1 };
    const tokens = [0, 0.4, 0.999999].map((draw) =>
      pickToken(logits, probabilities, options, () => draw),
    );
    expect(tokens).toEqual([0, 1, 2]);
    const almostOne = Float32Array.of(0.5, 0.4999999, 0);
    expect(pickToken(almostOne, almostOne, plain, () => 1 - 2 ** -53)).toBe(1);
  });
});

describe("largest", () => {
  it("agrees with sorting", () => {
    fc.assert(
      fc.property(logitLists, fc.integer({ min: 1, max: 40 }), (values, count) => {
        expect(largest(values, count)).toEqual(ranked(values).slice(0, count));
      }),
    );
  });
});
