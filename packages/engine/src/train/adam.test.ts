import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { at } from "../util/at.js";
import { adamStep, completeAdamOptions } from "./adam.js";

function newState(length: number) {
  return {
    step: 0,
    firstMoment: new Float32Array(length),
    secondMoment: new Float32Array(length),
  };
}

const values = fc.array(fc.float({ min: -10, max: 10, noNaN: true }), {
  minLength: 1,
  maxLength: 8,
});

describe("adamStep", () => {
  it("moves each parameter by the learning rate against its gradient at first", () => {
    fc.assert(
      fc.property(values, (list) => {
        const gradient = Float32Array.from(list);
        const parameters = new Float32Array(gradient.length);
        const options = completeAdamOptions({ learningRate: 0.125 });
        const report = adamStep(parameters, gradient, newState(gradient.length), options);
        for (const [i, slope] of gradient.entries()) {
          const large = Math.abs(slope) > 1e-3;
          if (slope === 0) expect(at(parameters, i)).toBe(0);
          else if (large) expect(at(parameters, i)).toBeCloseTo(-0.125 * Math.sign(slope), 5);
        }
        expect(report.step).toBe(1);
      }),
    );
  });

  it("decays parameters by the learning rate, whatever the gradient", () => {
    const parameters = Float32Array.of(8);
    const options = completeAdamOptions({ learningRate: 0.5, weightDecay: 0.25 });
    adamStep(parameters, Float32Array.of(0), newState(1), options);
    expect(at(parameters, 0)).toBe(7);
  });

  it("clips the whole gradient to the norm, and reports the norm before", () => {
    const options = completeAdamOptions({ learningRate: 1, beta1: 0, gradClipNorm: 1 });
    const state = newState(2);
    const report = adamStep(new Float32Array(2), Float32Array.of(30, 40), state, options);
    expect(report.gradientNorm).toBeCloseTo(50, 5);
    expect(at(state.firstMoment, 0)).toBeCloseTo(0.6, 5);
    expect(at(state.firstMoment, 1)).toBeCloseTo(0.8, 5);
  });

  it.each([NaN, Infinity])("refuses a gradient with %s and changes nothing", (slope) => {
    const parameters = Float32Array.of(1, 2);
    const state = newState(2);
    const options = completeAdamOptions({ learningRate: 0.1, weightDecay: 0.1 });
    const gradient = Float32Array.of(1, slope);
    expect(() => adamStep(parameters, gradient, state, options)).toThrow("norm of the gradient is");
    expect([...parameters]).toEqual([1, 2]);
    expect(state).toEqual(newState(2));
  });

  it("does nothing to a parameter that never had a gradient, even with eps 0", () => {
    const parameters = Float32Array.of(3);
    const options = completeAdamOptions({ learningRate: 1, eps: 0 });
    adamStep(parameters, Float32Array.of(0), newState(1), options);
    expect(at(parameters, 0)).toBe(3);
  });

  it.each([
    [{ learningRate: -1 }, "learningRate is -1"],
    [{ learningRate: NaN }, "learningRate is NaN"],
    [{ learningRate: 1, beta1: 1 }, "beta1 is 1"],
    [{ learningRate: 1, beta2: -0.1 }, "beta2 is -0.1"],
    [{ learningRate: 1, eps: -1 }, "eps is -1"],
    [{ learningRate: 1, weightDecay: Infinity }, "weightDecay is Infinity"],
    [{ learningRate: 1, gradClipNorm: -1 }, "gradClipNorm is -1"],
  ])("refuses %o", (options, message) => {
    expect(() => completeAdamOptions(options)).toThrow(message);
  });
});
