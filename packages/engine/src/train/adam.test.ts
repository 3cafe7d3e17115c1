import fc from "fast-check";
import { afterAll, describe, expect, it, vi } from "vitest";
import { ProgramCache } from "../execution/program.js";
import { at } from "../util/arrays.js";
import { adamUpdate } from "./graphs/adam.js";
import { adamState, adamStep, completeAdamOptions, type AdamState } from "./adam.js";

function newState(length: number, parameters = new Float32Array(length)): AdamState {
  const [firstMoment, secondMoment] = [new Float32Array(length), new Float32Array(length)];
  return adamState(parameters, { step: 0, firstMoment, secondMoment });
}

const values = fc.array(fc.float({ min: -10, max: 10, noNaN: true }), {
  minLength: 1,
  maxLength: 8,
});

describe("adamStep", () => {
  const programs = new ProgramCache({ threads: 1 });
  afterAll(() => programs.release());

  it("moves each parameter by the learning rate against its gradient in the first step", async () => {
    await fc.assert(
      fc.asyncProperty(values, async (list) => {
        const gradient = Float32Array.from(list);
        const parameters = new Float32Array(gradient.length);
        const options = completeAdamOptions({ learningRate: 0.125 });
        const state = newState(gradient.length);
        const report = await adamStep(programs, parameters, gradient, state, options);
        for (const [i, slope] of gradient.entries()) {
          const large = Math.abs(slope) > 1e-3;
          if (slope === 0) expect(at(parameters, i)).toBe(0);
          else if (large) expect(at(parameters, i)).toBeCloseTo(-0.125 * Math.sign(slope), 5);
        }
        expect(report.step).toBe(1);
      }),
    );
  });

  it("decays parameters by the learning rate, independent of the gradient", async () => {
    const parameters = Float32Array.of(8);
    const options = completeAdamOptions({ learningRate: 0.5, weightDecay: 0.25 });
    await adamStep(programs, parameters, Float32Array.of(0), newState(1), options);
    expect(at(parameters, 0)).toBe(7);
  });

  it("clips the whole gradient to the norm, and reports the norm before clipping", async () => {
    const options = completeAdamOptions({ learningRate: 1, beta1: 0, gradClipNorm: 1 });
    const state = newState(2);
    const gradient = Float32Array.of(30, 40);
    const report = await adamStep(programs, new Float32Array(2), gradient, state, options);
    expect(report.gradientNorm).toBeCloseTo(50, 5);
    expect(at(state.firstMoment, 0)).toBeCloseTo(0.6, 5);
    expect(at(state.firstMoment, 1)).toBeCloseTo(0.8, 5);
  });

  it.each([NaN, Infinity])("refuses a gradient with %s and changes nothing", async (slope) => {
    const parameters = Float32Array.of(1, 2);
    const state = newState(2);
    const options = completeAdamOptions({ learningRate: 0.1, weightDecay: 0.1 });
    const gradient = Float32Array.of(1, slope);
    await expect(adamStep(programs, parameters, gradient, state, options)).rejects.toThrow(
      "norm of the gradient is",
    );
    expect([...parameters]).toEqual([1, 2]);
    expect(state).toEqual(newState(2));
  });

  it.each([
    ["learningRate", { learningRate: 1e20 }],
    ["learningRate", { learningRate: 1e300 }],
    ["weightDecay", { learningRate: 0.1, weightDecay: 1e30 }],
    ["learningRate", { learningRate: 1e19, eps: 1, gradClipNorm: 1e-3 }],
  ])("refuses a step to non-finite values, names %s and changes nothing", async (name, given) => {
    const parameters = Float32Array.of(1, 2e10);
    const state = adamState(parameters, {
      step: 3,
      firstMoment: Float32Array.of(1, 2),
      secondMoment: Float32Array.of(3, 1e-30),
    });
    const before = structuredClone({ parameters, state });
    const gradient = Float32Array.of(1, -1);
    const step = adamStep(programs, parameters, gradient, state, completeAdamOptions(given));
    await expect(step).rejects.toThrow(`${name} is ${(given as Record<string, number>)[name]}: `);
    expect({ parameters, state }).toEqual(before);
  });

  it("takes exactly the steps that lead to finite values", async () => {
    const sizes = fc.constantFrom(0, 1e-38, 1e-20, 1, 1e10, 1e18, 1e20, 1e38);
    const factors = fc.constantFrom(0, 1e-30, 1e-4, 1, 1e15, 1e25, 1e200);
    const betas = fc.constantFrom(0, 0.5, 0.9, 0.999999999);
    const run = fc.record({
      start: sizes,
      gradients: fc.array(sizes, { minLength: 1, maxLength: 3 }),
      options: fc.record({
        learningRate: factors,
        weightDecay: factors,
        eps: factors,
        beta1: betas,
        beta2: betas,
        gradClipNorm: factors,
      }),
    });
    await fc.assert(
      fc.asyncProperty(run, async ({ start, gradients, options }) => {
        const parameters = Float32Array.of(start, -start);
        const state = newState(2, parameters);
        for (const size of gradients) {
          const before = structuredClone({ parameters, state });
          const gradient = Float32Array.of(size, -size);
          const taken = await adamStep(
            programs,
            parameters,
            gradient,
            state,
            completeAdamOptions(options),
          ).catch(() => undefined);
          if (taken) expect(isFinite(parameters, state)).toBe(true);
          else expect({ parameters, state }).toEqual(before);
        }
      }),
      {
        numRuns: 300,
        examples: [
          // A moment that outlives its divisor: the direction is infinite, the step along it 0.
          [
            {
              start: 0,
              gradients: [1e18, 0],
              options: {
                learningRate: 0,
                weightDecay: 0,
                eps: 0,
                beta1: 0.999999999,
                beta2: 0,
                gradClipNorm: 0,
              },
            },
          ],
        ],
      },
    );
  });

  it("reports a broken adapter when the runtime fails in the middle of a step", async () => {
    const length = (1 << 18) + 3;
    const parameters = new Float32Array(length).fill(1);
    const program = await programs.get("adam", adamUpdate);
    const run = program.run.bind(program);
    const spy = vi.spyOn(program, "run");
    spy.mockImplementationOnce(run).mockRejectedValueOnce(new Error("out of memory"));
    const options = completeAdamOptions({ learningRate: 0.5, weightDecay: 1 });
    const gradient = new Float32Array(length);
    const step = adamStep(programs, parameters, gradient, newState(length, parameters), options);
    await expect(step).rejects.toMatchObject({
      code: "adapter_broken",
      category: "internal",
      message: expect.stringContaining("out of memory"),
    });
    expect([parameters[0], parameters.at(-1)]).toEqual([0.5, 1]);
    spy.mockRestore();
  });

  it("changes nothing when the runtime fails in a step that may not stay finite", async () => {
    const parameters = Float32Array.of(1, 2);
    const state = newState(2, parameters);
    const before = structuredClone({ parameters, state });
    const program = await programs.get("adam", adamUpdate);
    const spy = vi.spyOn(program, "run").mockImplementationOnce((_, results) => {
      for (const array of Object.values(results)) array.fill(1234);
      return Promise.reject(new Error("out of memory"));
    });
    const options = completeAdamOptions({ learningRate: 1e20 });
    const step = adamStep(programs, parameters, Float32Array.of(1, 1), state, options);
    await expect(step).rejects.toThrow(/^out of memory/);
    expect({ parameters, state }).toEqual(before);
    spy.mockRestore();
  });

  it("leaves a parameter without gradients unchanged, even with eps 0", async () => {
    const parameters = Float32Array.of(3);
    const options = completeAdamOptions({ learningRate: 1, eps: 0 });
    await adamStep(programs, parameters, Float32Array.of(0), newState(1), options);
    expect(at(parameters, 0)).toBe(3);
  });

  it("takes the textbook's steps, also over more parameters than one chunk", async () => {
    const length = (1 << 18) + 3;
    const gradients = [1, 2, 3].map((seed) =>
      Float32Array.from({ length }, (_, i) => Math.sin(i * seed) / seed),
    );
    const start = Float32Array.from({ length }, (_, i) => Math.cos(i));
    const options = completeAdamOptions({
      learningRate: 0.01,
      eps: 1e-8,
      weightDecay: 0.1,
      gradClipNorm: 100,
    });
    const state = newState(length);
    const parameters = start.slice();
    const own = start.slice();
    const [first, second] = [new Float64Array(length), new Float64Array(length)];
    for (const [index, gradient] of gradients.entries()) {
      const report = await adamStep(programs, parameters, gradient, state, options);
      const norm = Math.hypot(...chunkNorms(gradient));
      expect(report.gradientNorm).toBeCloseTo(norm, 3);
      const clip = 100 / (norm + 1e-6);
      const before = own.slice();
      for (let i = 0; i < length; i++) {
        const g = at(gradient, i) * clip;
        first[i] = 0.9 * at(first, i) + 0.1 * g;
        second[i] = 0.95 * at(second, i) + 0.05 * g * g;
        const mean = at(first, i) / (1 - 0.9 ** (index + 1));
        const deviation = Math.sqrt(at(second, i) / (1 - 0.95 ** (index + 1))) + 1e-8;
        own[i] = at(own, i) - 0.01 * (mean / deviation + 0.1 * at(own, i));
      }
      const changes = own.map((value, i) => value - at(before, i));
      expect(report.updateNorm / Math.hypot(...chunkNorms(changes))).toBeCloseTo(1, 4);
    }
    const worst = parameters.reduce(
      (most, value, i) => Math.max(most, Math.abs(value - at(own, i))),
      0,
    );
    expect(worst).toBeLessThan(2e-6);
    expect(state.step).toBe(3);
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

/** Norms of parts, few enough to be spread into a call. */
function chunkNorms(array: Float32Array): number[] {
  const norms: number[] = [];
  for (let start = 0; start < array.length; start += 1000) {
    norms.push(Math.hypot(...array.subarray(start, start + 1000)));
  }
  return norms;
}

function isFinite(parameters: Float32Array, { firstMoment, secondMoment }: AdamState): boolean {
  return [parameters, firstMoment, secondMoment].every((array) => array.every(Number.isFinite));
}
