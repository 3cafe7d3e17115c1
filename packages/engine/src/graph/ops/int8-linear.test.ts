import { describe, expect, it } from "vitest";
import { processor } from "../../execution/device.js";
import { Program } from "../../execution/program.js";
import { probeInt8 } from "../../model/int8-probe.js";
import { at } from "../../util/arrays.js";
import { RandomStream } from "../../util/random.js";
import { compileGraph } from "../compile.js";
import { differentiate } from "../differentiate.js";
import { Dim } from "../dim.js";
import { Graph } from "../graph.js";
import { int8Linear, widened, type Int8Digits } from "./int8-linear.js";
import { transpose } from "./shape.js";

const [inputs, outputs] = [48, 40];

/** Digits of more bits overflow on this processor: see `probeInt8`. */
const exactBits = (await probeInt8({ threads: 1, device: processor })).digitBits ?? 7;

/** A product and the gradient of its input, for any number of rows. */
async function productProgram(
  format: Int8Digits,
  gradientFormat = format,
  readOnce = false,
): Promise<Program> {
  const graph = new Graph();
  const value = graph.input("value", [Dim.symbol("rows"), inputs]);
  const transposed = graph.input("weight", [outputs, inputs], "int8");
  const product = int8Linear(value, {
    transposed,
    values: transpose(transposed, [1, 0]),
    scale: graph.input("scale", [outputs]),
    format,
    gradientFormat,
    readOnce,
  });
  const gradient = graph.input("gradient", product.shape);
  const ofValue = at(differentiate([{ of: product, gradient }], [value]), 0);
  const compiled = compileGraph(graph, { outputs: { product, ofValue } });
  return Program.create(compiled, { threads: 1, device: processor });
}

function normals(count: number, seed: number): Float32Array {
  const random = new RandomStream(seed);
  return Float32Array.from({ length: count }, () => random.nextNormal());
}

/** Rows times a matrix that has a row per input, in double precision. */
function exactProduct(
  rows: Float32Array,
  width: number,
  entry: (input: number, output: number) => number,
  count: number,
): Float64Array {
  const result = new Float64Array((rows.length / width) * count);
  for (let i = 0; i < result.length; i++) {
    const [row, output] = [Math.floor(i / count), i % count];
    let sum = 0;
    for (let k = 0; k < width; k++) sum += (rows[row * width + k] ?? 0) * entry(k, output);
    result[i] = sum;
  }
  return result;
}

function relativeError(found: Float32Array, exact: Float64Array): number {
  let [error, size] = [0, 0];
  for (const [i, value] of exact.entries()) {
    error += ((found[i] ?? NaN) - value) ** 2;
    size += value ** 2;
  }
  return Math.sqrt(error / size);
}

const weight = Int8Array.from(normals(inputs * outputs, 1), (value) =>
  Math.max(-127, Math.min(127, Math.round(value * 40))),
);
const scale = normals(outputs, 2).map((value) => Math.abs(value) + 0.01);
const weightAt = (input: number, output: number): number =>
  (weight[output * inputs + input] ?? 0) * (scale[output] ?? 0);

async function run(program: Program, value: Float32Array, gradient: Float32Array) {
  const rows = value.length / inputs;
  const results = {
    product: new Float32Array(rows * outputs),
    ofValue: new Float32Array(rows * inputs),
  };
  await program.run({ value, weight, scale, gradient }, results, { rows });
  return results;
}

describe.each([
  { digits: 1, bits: 8, limit: 1e-2 },
  { digits: 2, bits: 8, limit: 4e-5 },
  { digits: 1, bits: 7, limit: 2e-2 },
  { digits: 2, bits: 7, limit: 2e-4 },
  { digits: 3, bits: 7, limit: 2e-6 },
] as const)("a product of $digits digits of $bits bits", ({ digits, bits, limit }) => {
  if (bits > exactBits) return it.skip("is not exact on this processor");

  it("is close to the exact one, like its gradient", async () => {
    const program = await productProgram({ digits, bits });
    const [value, gradient] = [normals(7 * inputs, 3), normals(7 * outputs, 4)];
    const { product, ofValue } = await run(program, value, gradient);
    expect(relativeError(product, exactProduct(value, inputs, weightAt, outputs))).toBeLessThan(
      limit,
    );
    const back = exactProduct(gradient, outputs, (o, i) => weightAt(i, o), inputs);
    expect(relativeError(ofValue, back)).toBeLessThan(limit);
    await program.release();
  });

  it("gives a row the same bits in any batch", async () => {
    const program = await productProgram({ digits, bits });
    const [value, gradient] = [normals(33 * inputs, 5), normals(33 * outputs, 6)];
    const together = await run(program, value, gradient);
    for (const row of [0, 7, 32]) {
      const alone = await run(
        program,
        value.slice(row * inputs, (row + 1) * inputs),
        gradient.slice(row * outputs, (row + 1) * outputs),
      );
      expect(alone.product).toEqual(together.product.slice(row * outputs, (row + 1) * outputs));
      expect(alone.ofValue).toEqual(together.ofValue.slice(row * inputs, (row + 1) * inputs));
    }
    await program.release();
  });

  it("gives the same bits when its weight is read once for all digits", async () => {
    const [value, gradient] = [normals(9 * inputs, 11), normals(9 * outputs, 12)];
    const results: Float32Array[] = [];
    for (const readOnce of [false, true]) {
      const program = await productProgram({ digits, bits }, { digits, bits }, readOnce);
      results.push((await run(program, value, gradient)).product);
      await program.release();
    }
    expect(results[1]).toEqual(results[0]);
  });

  it("handles rows of zeros, and rows of different magnitudes", async () => {
    const program = await productProgram({ digits, bits });
    const value = normals(3 * inputs, 7);
    for (let i = 0; i < inputs; i++) {
      value[i] = 0;
      value[inputs + i] = (value[inputs + i] ?? 0) * 1e20;
      value[2 * inputs + i] = (value[2 * inputs + i] ?? 0) * 1e-20;
    }
    const { product } = await run(program, value, normals(3 * outputs, 8));
    expect(product.slice(0, outputs).every((entry) => entry === 0)).toBe(true);
    const exact = exactProduct(value, inputs, weightAt, outputs);
    for (const row of [1, 2]) {
      const part = [row * outputs, (row + 1) * outputs] as const;
      expect(relativeError(product.slice(...part), exact.slice(...part))).toBeLessThan(2 * limit);
    }
    await program.release();
  });
});

it("widens a weight", async () => {
  const graph = new Graph();
  const transposed = graph.input("weight", [outputs, inputs], "int8");
  const format = { digits: 3, bits: 7 } as const;
  const ofOutputs = graph.input("scale", [outputs]);
  const parts = { transposed, values: transposed, scale: ofOutputs, format };
  const wide = widened({ ...parts, gradientFormat: format });
  const compiled = compileGraph(graph, { outputs: { wide } });
  const program = await Program.create(compiled, { threads: 1, device: processor });
  const found = new Float32Array(outputs * inputs);
  await program.run({ weight, scale }, { wide: found }, {});
  const exact = found.map((_, i) => weightAt(i % inputs, Math.floor(i / inputs)));
  expect(found).toEqual(exact);
  await program.release();
});

it("quantizes a value again for weights with another number of digits", async () => {
  const formats: readonly Int8Digits[] = [
    { digits: 1, bits: 8 },
    { digits: 1, bits: 7 },
    { digits: 3, bits: 7 },
  ];
  const value = normals(5 * inputs, 13);
  const separate: Float32Array[] = [];
  for (const format of formats) {
    const program = await productProgram(format);
    separate.push((await run(program, value, normals(5 * outputs, 14))).product);
    await program.release();
  }
  const graph = new Graph();
  const shared = graph.input("value", [Dim.symbol("rows"), inputs]);
  const transposed = graph.input("weight", [outputs, inputs], "int8");
  const parts = { transposed, values: transpose(transposed, [1, 0]) };
  const ofOutputs = graph.input("scale", [outputs]);
  const products = formats.map((format) =>
    int8Linear(shared, { ...parts, scale: ofOutputs, format, gradientFormat: format }),
  );
  const named = Object.fromEntries(products.map((product, i) => [`product${i}`, product]));
  const compiled = compileGraph(graph, { outputs: named });
  const program = await Program.create(compiled, { threads: 1, device: processor });
  const together = formats.map(() => new Float32Array(5 * outputs));
  const results = Object.fromEntries(together.map((product, i) => [`product${i}`, product]));
  await program.run({ value, weight, scale }, results, { rows: 5 });
  expect(together).toEqual(separate);
  await program.release();
});

it("keeps the small entries of a gradient beside one large one if it has two digits", async () => {
  const gradient = normals(5 * outputs, 9).map((value) => value / 1000);
  for (const [row, place] of [0, 17, outputs - 1, 3, 3].entries()) {
    gradient[row * outputs + place] = row % 2 === 0 ? 1 : -1;
  }
  const value = normals(5 * inputs, 10);
  const exact = exactProduct(gradient, outputs, (o, i) => weightAt(i, o), inputs);
  const large = gradient.map((entry) => (Math.abs(entry) === 1 ? entry : 0));
  const ofLarge = exactProduct(large, outputs, (o, i) => weightAt(i, o), inputs);
  const smallError = async (digits: 1 | 2): Promise<number> => {
    const program = await productProgram(
      { digits: 1, bits: exactBits },
      { digits, bits: exactBits },
    );
    const { ofValue } = await run(program, value, gradient);
    await program.release();
    return relativeError(
      ofValue.map((entry, i) => entry - (ofLarge[i] ?? NaN)),
      exact.map((entry, i) => entry - (ofLarge[i] ?? NaN)),
    );
  };
  // Two digits of 7 bits are four times as coarse.
  expect(await smallError(2)).toBeLessThan(exactBits === 8 ? 2e-2 : 8e-2);
  expect(await smallError(1)).toBeGreaterThan(0.1);
});
