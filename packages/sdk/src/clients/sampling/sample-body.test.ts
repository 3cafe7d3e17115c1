import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArgumentError } from "../../errors/argument-error.js";
import { ModelInput } from "../../types/model-input.js";
import { encodeJson } from "../../wire/json-codec.js";
import { stringifyJson } from "../../wire/json-text.js";
import { SampleBodies } from "./sample-body.js";
import { checkSampleCall } from "./sample-call.js";

const tokens = fc.array(fc.nat(2 ** 31 - 1), { minLength: 1, maxLength: 8 });
const params = fc.record(
  {
    maxTokens: fc.constantFrom(1, 32, 1_987_654_321, 1_876_543_219),
    seed: fc.oneof(fc.nat(3), fc.bigInt(2n ** 53n, 2n ** 54n)),
    temperature: fc.constantFrom(0, 0.5, 1),
    topK: fc.constantFrom(-1, 5),
    stop: fc.oneof(
      fc.constantFrom("\n", "1987654321"),
      fc.array(fc.nat(2), { maxLength: 2 }),
      fc.array(fc.constantFrom("a", "b"), { maxLength: 2 }),
    ),
    minP: fc.constantFrom(0.1, 0.2),
  },
  { requiredKeys: [] },
);
const targets = { data: Int32Array.of(1, 2), shape: [2, 1] };
const call = fc.record(
  {
    prompt: fc.oneof(
      tokens,
      fc
        .tuple(tokens, tokens)
        .map(([a, b]) => ModelInput.fromInts(a).append({ type: "encoded_text", tokens: b })),
    ),
    samplingParams: params,
    numSamples: fc.constantFrom(1, 2),
    includePromptLogprobs: fc.boolean(),
    topkPromptLogprobs: fc.constantFrom(0, 3),
    topkSampleLogprobs: fc.constantFrom(0, 2),
    promptAltTokensK: fc.constantFrom(0, 4),
    targetPromptLogprobs: fc.option(fc.constant(targets), { nil: undefined }),
  },
  { requiredKeys: ["prompt"] },
);

describe("the body of a sample", () => {
  it("equals the schema's output, independent of earlier bodies", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(call, fc.option(fc.nat(), { nil: undefined }))), (calls) => {
        const target = { samplingSessionId: "s:1" };
        const bodies = new SampleBodies(target);
        for (const [options, seqId] of calls) {
          const { promptLogprobs, ...checked } = checkSampleCall(options);
          const request = { ...target, seqId, promptLogprobs, ...checked };
          const { content } = bodies.write({ promptLogprobs, ...checked }, seqId);
          expect(content).toBe(stringifyJson(encodeJson("SampleRequest", request)));
        }
      }),
    );
  });
});

describe("parameters of a sample", () => {
  const complete = (samplingParams: object) =>
    checkSampleCall({ prompt: [1], samplingParams }).samplingParams;

  it("are checked once while they are equal", () => {
    const first = complete({ maxTokens: 8, stop: ["a", "b"], seed: undefined });
    expect(complete({ stop: ["a", "b"], maxTokens: 8 })).toBe(first);
  });

  it("are checked again after a change, also of the same object", () => {
    const given = { maxTokens: 8, stop: ["a"] as string[] };
    complete(given);
    given.stop.push("b");
    expect(complete(given).stop).toEqual(["a", "b"]);
    given.maxTokens = 9;
    expect(complete(given).maxTokens).toBe(9);
    expect(() => complete({ ...given, maxTokens: 0 })).toThrow(ArgumentError);
    expect(() => complete({ ...given, max_tokens: 4 })).toThrow(/maxTokens/);
    expect(complete({ stop: ["a", "b"] }).maxTokens).toBeNull();
  });

  it("on a prototype are not mistaken for others", () => {
    class Params {
      readonly #most: number;
      constructor(most: number) {
        this.#most = most;
      }
      get maxTokens(): number {
        return this.#most;
      }
    }
    expect([2, 3].map((most) => complete(new Params(most)).maxTokens)).toEqual([2, 3]);
  });
});
