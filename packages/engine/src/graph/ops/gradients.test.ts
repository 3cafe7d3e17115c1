import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Program } from "../../execution/program.js";
import { compileGraph } from "../compile.js";
import { differentiate } from "../differentiate.js";
import { Dim } from "../dim.js";
import { Graph } from "../graph.js";
import type { Tensor } from "../tensor.js";
import * as ops from "./index.js";

/** A differentiable function under test: builds its result from inputs of the given shapes. */
interface GradientCase {
  readonly shapes: readonly (readonly number[])[];
  readonly build: (inputs: readonly Tensor[], graph: Graph) => Tensor;
  /** Values are drawn at least this far from points where the function has a kink. */
  readonly keepApart?: boolean;
  readonly integers?: Readonly<
    Record<string, { shape: readonly number[]; values: readonly number[] }>
  >;
}

const size = fc.integer({ min: 1, max: 5 });
const first = (tensors: readonly Tensor[]): Tensor => at(tensors, 0);

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new Error(`no item ${index}`);
  return item;
}

const unary = (op: (value: Tensor) => Tensor): fc.Arbitrary<GradientCase> =>
  fc.array(size, { minLength: 1, maxLength: 3 }).map((shape) => ({
    shapes: [shape],
    build: (inputs) => op(first(inputs)),
  }));

const onePlusSquare = (value: Tensor): Tensor =>
  ops.add(value.graph.scalar(1), ops.multiply(value, value));

/** Two shapes that broadcast with each other. */
const broadcastable = fc
  .array(fc.record({ size, left: fc.boolean(), right: fc.boolean() }), {
    minLength: 1,
    maxLength: 3,
  })
  .chain((axes) =>
    fc.record({
      left: fc.constant(axes.map((axis) => (axis.left ? 1 : axis.size))),
      right: fc
        .integer({ min: 0, max: axes.length - 1 })
        .map((dropped) => axes.slice(dropped).map((axis) => (axis.right ? 1 : axis.size))),
    }),
  );

const binary = (
  op: (left: Tensor, right: Tensor) => Tensor,
  keepApart = false,
): fc.Arbitrary<GradientCase> =>
  broadcastable.map(({ left, right }) => ({
    shapes: [left, right],
    build: (inputs) => op(at(inputs, 0), at(inputs, 1)),
    keepApart,
  }));

const matrixProduct = (
  op: typeof ops.batchMatmul,
  batch: fc.Arbitrary<readonly number[]>,
): fc.Arbitrary<GradientCase> =>
  fc
    .record({
      batch,
      m: size,
      k: size,
      n: size,
      transposeLeft: fc.boolean(),
      transposeRight: fc.boolean(),
    })
    .map(({ batch: lead, m, k, n, transposeLeft, transposeRight }) => ({
      shapes: [
        [...lead, ...(transposeLeft ? [k, m] : [m, k])],
        [...lead, ...(transposeRight ? [n, k] : [k, n])],
      ],
      build: (inputs) =>
        op(at(inputs, 0), at(inputs, 1), { transposeLeft, transposeRight, scale: 0.5 }),
    }));

const shuffledRows = fc.integer({ min: 1, max: 6 }).chain((count) =>
  fc.record({
    count: fc.constant(count),
    width: size,
    index: fc.shuffledSubarray([...Array(count).keys()], { minLength: 1 }),
  }),
);

const cases: Record<string, fc.Arbitrary<GradientCase>> = {
  add: binary(ops.add),
  subtract: binary(ops.subtract),
  multiply: binary(ops.multiply),
  // One plus the square of anything is far from the pole.
  divide: binary((left, right) => ops.divide(left, onePlusSquare(right))),
  minimum: binary(ops.minimum, true),
  maximum: binary(ops.maximum, true),
  scale: unary((value) => ops.scale(value, -1.5)),
  negate: unary(ops.negate),
  exp: unary(ops.exp),
  squareRoot: unary((value) => ops.squareRoot(onePlusSquare(value))),
  sigmoid: unary(ops.sigmoid),
  silu: unary(ops.silu),
  causalConvolution: fc
    .record({
      sequences: size,
      channels: size,
      length: size,
      kernel: fc.integer({ min: 2, max: 4 }),
      continues: fc.boolean(),
    })
    .map(({ sequences, channels, length, kernel, continues }) => ({
      shapes: [
        [sequences, channels, length],
        [channels, 1, kernel],
        ...(continues ? [[sequences, channels, kernel - 1]] : []),
      ],
      build: (inputs) => ops.causalConvolution(at(inputs, 0), at(inputs, 1), inputs[2]),
    })),
  chunkedScan: fc
    .record({
      chunks: fc.integer({ min: 1, max: 3 }),
      heads: fc.integer({ min: 1, max: 2 }),
      group: fc.integer({ min: 1, max: 2 }),
      size: fc.constantFrom(2, 4, 8),
      keyDim: fc.integer({ min: 1, max: 3 }),
      valueDim: fc.integer({ min: 1, max: 3 }),
      corrects: fc.boolean(),
      continues: fc.boolean(),
    })
    .map(({ chunks, heads, group, size: tokens, keyDim, valueDim, corrects, continues }) => ({
      shapes: [
        [chunks, heads, 1, tokens, keyDim],
        [chunks, heads, 1, tokens, keyDim],
        [chunks, heads, group, tokens, valueDim],
        [chunks, heads, group, tokens, 1],
        ...(corrects ? [[chunks, heads, group, tokens, 1]] : []),
        ...(continues ? [[1, heads, group, keyDim, valueDim]] : []),
      ],
      // A decay is never positive, and keys are short: the states that corrections leave stay of moderate size.
      build: (inputs) => {
        const { result, state } = ops.chunkedScan({
          query: at(inputs, 0),
          key: ops.scale(at(inputs, 1), 0.3),
          value: at(inputs, 2),
          decay: ops.negate(ops.sigmoid(at(inputs, 3))),
          ...(corrects ? { strength: ops.sigmoid(at(inputs, 4)) } : {}),
          ...(continues ? { state: at(inputs, corrects ? 5 : 4) } : {}),
        });
        const flat = (value: Tensor) =>
          ops.reshape(value, [fixedShape(value).reduce((count, length) => count * length)]);
        return ops.concat([flat(result), flat(state)], 0);
      },
    })),
  stateDecay: fc.tuple(size, size).map(([tokens, heads]) => ({
    shapes: [[tokens, heads], [heads], [heads]],
    // Factors are far from zero, by which the gradient divides.
    build: (inputs) => ops.stateDecay(at(inputs, 0), at(inputs, 1), onePlusSquare(at(inputs, 2))),
  })),
  gatedSilu: fc.array(size, { minLength: 1, maxLength: 3 }).map((shape) => ({
    shapes: [shape, shape],
    build: (inputs) => ops.gatedSilu(at(inputs, 0), at(inputs, 1)),
  })),
  gatedGelu: fc.array(size, { minLength: 1, maxLength: 3 }).map((shape) => ({
    shapes: [shape, shape],
    build: (inputs) => ops.gatedGelu(at(inputs, 0), at(inputs, 1)),
  })),
  softmax: unary(ops.softmax),
  reduceSum: fc
    .tuple(size, size, size, fc.subarray([0, 1, 2], { minLength: 1 }))
    .map(([a, b, c, axes]) => ({
      shapes: [[a, b, c]],
      build: (inputs) => ops.reduceSum(first(inputs), axes),
    })),
  reshape: fc.tuple(size, size, size).map(([a, b, c]) => ({
    shapes: [[a, b, c]],
    build: (inputs) => ops.reshape(first(inputs), [c, a * b]),
  })),
  transpose: fc
    .tuple(size, size, size, fc.shuffledSubarray([0, 1, 2], { minLength: 3 }))
    .map(([a, b, c, order]) => ({
      shapes: [[a, b, c]],
      build: (inputs) => ops.transpose(first(inputs), order),
    })),
  concat: fc.tuple(size, size, size).map(([rows, left, right]) => ({
    shapes: [
      [rows, left],
      [rows, right],
    ],
    build: (inputs) => ops.concat(inputs, 1),
  })),
  split: fc.tuple(size, size, size).map(([rows, left, right]) => ({
    shapes: [[rows, left + right]],
    // Using one part only also checks that the other part's gradient becomes zeros.
    build: (inputs) => first(ops.split(first(inputs), 1, [left, right])),
  })),
  matmul: matrixProduct(ops.matmul, fc.constant([])),
  batchMatmul: matrixProduct(ops.batchMatmul, fc.tuple(size, size)),
  linear: fc.tuple(size, size, size, fc.boolean()).map(([rows, inner, outer, vector]) => ({
    shapes: [[rows, inner], [outer, inner], vector ? [outer] : [rows, outer]],
    build: (inputs) => ops.linear(at(inputs, 0), at(inputs, 1), at(inputs, 2)),
  })),
  rmsNorm: fc.tuple(size, size, fc.integer({ min: 2, max: 8 })).map(([a, b, width]) => ({
    shapes: [[a, b, width], [width]],
    // Large enough that rows near zero are no steeper than a finite difference can follow.
    build: (inputs) => ops.rmsNorm(at(inputs, 0), at(inputs, 1), 0.05),
  })),
  rotary: fc
    .tuple(
      size,
      fc.integer({ min: 1, max: 3 }),
      // Whole heads rotate, or a part of them.
      fc.constantFrom([8, 8], [16, 16], [16, 6], [10, 8]),
    )
    .map(([tokens, heads, [headDim = 0, rotating = 0]]) => ({
      shapes: [[tokens, 1, heads * headDim]],
      integers: {
        positions: {
          shape: [tokens, 1],
          values: [...Array(tokens).keys()].map((n) => (n * 3) % 5),
        },
      },
      build: (inputs, graph) => {
        const tables = {
          cos: graph.input("cos", [5, rotating / 2]),
          sin: graph.input("sin", [5, rotating / 2]),
        };
        return ops.rotary(first(inputs), integerInput(graph, "positions"), tables, heads);
      },
    })),
  maskedAttention: fc
    .record({ batch: size, heads: size, group: size, queries: size, keys: size, width: size })
    .map(({ batch, heads, group, queries, keys, width }) => ({
      shapes: [
        [batch, heads, group * queries, width],
        [batch, heads, keys, width],
        [batch, heads, keys, width],
      ],
      build: (inputs, graph) =>
        ops.maskedAttention({
          query: at(inputs, 0),
          key: at(inputs, 1),
          value: at(inputs, 2),
          mask: graph.input("mask", [queries, keys]),
          group,
          scale: 0.7,
        }),
    })),
  gatherRows: shuffledRows.map(({ count, width, index }) => ({
    shapes: [[count, width]],
    integers: { index: { shape: [index.length], values: index } },
    build: (inputs, graph) => ops.gatherRows(first(inputs), integerInput(graph, "index")),
  })),
  scatterRows: shuffledRows.map(({ count, width, index }) => ({
    shapes: [[index.length, width]],
    integers: { index: { shape: [index.length], values: index } },
    build: (inputs, graph) =>
      ops.scatterRows(first(inputs), integerInput(graph, "index"), Dim.of(count)),
  })),
  targetLogprobs: fc
    .tuple(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 7 }),
    )
    .map(([rows, perRow, vocabulary]) => ({
      shapes: [[rows, vocabulary]],
      integers: {
        targets: {
          shape: [rows, perRow],
          values: [...Array(rows * perRow).keys()].map((n) => (n * 5) % vocabulary),
        },
      },
      build: (inputs, graph) => ops.targetLogprobs(first(inputs), integerInput(graph, "targets")),
    })),
};

/** Ops that are not functions of a value with a gradient of their own. */
const withoutGradient = new Set([
  "dimAt",
  "zeros",
  "expand",
  "stopGradient",
  "addTo",
  "cachedAttention",
  "cachedConvolution",
  "cachedScan",
  "headStep",
  "withHiddenProduct",
  "logSoftmax",
  // Finite differences do not see through rounding: its own test compares with the exact gradient.
  "int8Linear",
  // Only frozen weights are widened.
  "widened",
]);

describe("gradients of graph ops agree with finite differences", () => {
  it("has a case for every op", () => {
    const exported = Object.keys(ops).filter((name) => !withoutGradient.has(name));
    expect(Object.keys(cases).toSorted()).toEqual(exported.toSorted());
  });

  for (const [name, arbitrary] of Object.entries(cases)) {
    it(name, async () => {
      await fc.assert(
        fc.asyncProperty(arbitrary, fc.integer(), async (gradientCase, seed) => {
          await checkGradient(gradientCase, seed);
        }),
        { numRuns: process.env.TINKER_TS_TEST_FULL ? 100 : 12 },
      );
    });
  }

  it("gives a hidden product the gradients of a visible one", async () => {
    const results = [];
    for (const hidden of [true, false]) {
      const graph = new Graph();
      const rest = graph.input("rest", [3, 4]);
      const left = graph.input("left", [3, 2]);
      const right = graph.input("right", [4, 2]);
      const sum = ops.linear(left, right, rest);
      const value = hidden ? ops.withHiddenProduct(ops.stopGradient(sum), left, right) : sum;
      const seed = { of: value, gradient: graph.input("seed", [3, 4]) };
      const gradients = differentiate([seed], [left, right]);
      const program = await createProgram(graph, {
        value,
        ofLeft: at(gradients, 0),
        ofRight: at(gradients, 1),
      });
      const random = randomNumbers(1);
      const feeds = {
        rest: randomArray([3, 4], random),
        left: randomArray([3, 2], random),
        right: randomArray([4, 2], random),
        seed: randomArray([3, 4], random),
      };
      const out = {
        value: new Float32Array(12),
        ofLeft: new Float32Array(6),
        ofRight: new Float32Array(8),
      };
      await program.run(feeds, out, {});
      results.push(out);
    }
    expect(results[0]).toEqual(results[1]);
  });

  it("stops gradients at stopGradient", async () => {
    const graph = new Graph();
    const value = graph.input("input0", [3]);
    const result = ops.multiply(value, ops.stopGradient(value));
    const [gradient] = differentiate([{ of: result, gradient: graph.input("seed", [3]) }], [value]);
    const program = await createProgram(graph, { gradient: at([gradient ?? value], 0) });
    const out = new Float32Array(3);
    const input0 = Float32Array.of(1, 2, 3);
    await program.run({ input0, seed: Float32Array.of(1, 1, 1) }, { gradient: out }, {});
    expect([...out]).toEqual([1, 2, 3]);
  });
});

const currentIntegers = new WeakMap<Graph, Map<string, Tensor>>();

function integerInput(graph: Graph, name: string): Tensor {
  const tensor = currentIntegers.get(graph)?.get(name);
  if (tensor === undefined) throw new Error(`no integer input ${name}`);
  return tensor;
}

async function checkGradient(gradientCase: GradientCase, seed: number): Promise<void> {
  const random = randomNumbers(seed);
  const graph = new Graph();
  const inputs = gradientCase.shapes.map((shape, index) => graph.input(`input${index}`, shape));
  const integers = Object.entries(gradientCase.integers ?? {});
  currentIntegers.set(
    graph,
    new Map(integers.map(([name, { shape }]) => [name, graph.input(name, shape, "int64")])),
  );
  const result = gradientCase.build(inputs, graph);
  const seedInput = graph.input("seed", result.shape);
  const gradients = differentiate([{ of: result, gradient: seedInput }], inputs);

  const values = gradientCase.shapes.map((shape) => randomArray(shape, random));
  if (gradientCase.keepApart === true) spread(values);
  const weights = randomArray(fixedShape(result), random);
  const feeds: Record<string, Float32Array | BigInt64Array> = {
    seed: weights,
  };
  for (const name of ["cos", "sin", "mask"]) {
    const table = graph.inputs.get(name);
    if (table !== undefined) feeds[name] = randomArray(fixedShape(table), random);
  }
  for (const [name, { values: list }] of integers) feeds[name] = BigInt64Array.from(list, BigInt);
  for (const [index, value] of values.entries()) feeds[`input${index}`] = value;

  const outputs: Record<string, Tensor> = { result };
  for (const [index, gradient] of gradients.entries()) outputs[`gradient${index}`] = gradient;
  const program = await createProgram(graph, outputs);
  const objective = async (): Promise<number> => {
    const out = new Float32Array(weights.length);
    await program.run(feeds, { result: out }, {});
    return out.reduce((sum, value, index) => sum + value * at([...weights], index), 0);
  };

  const analytic = values.map((value) => new Float32Array(value.length));
  const results = Object.fromEntries(analytic.map((array, index) => [`gradient${index}`, array]));
  await program.run(feeds, results, {});
  for (const [index, value] of values.entries()) {
    const position = Math.floor(random() * value.length);
    const original = at([...value], position);
    const step = 1e-2;
    value[position] = original + step;
    const above = await objective();
    value[position] = original - step;
    const below = await objective();
    value[position] = original;
    const numeric = (above - below) / (2 * step);
    const expected = at([...at(analytic, index)], position);
    expect(Math.abs(numeric - expected)).toBeLessThan(5e-3 * Math.max(1, Math.abs(expected)));
  }
  await program.release();
}

function fixedShape({ shape }: Tensor): readonly number[] {
  return shape.map((dim) => dim.evaluate({}));
}

function createProgram(graph: Graph, outputs: Record<string, Tensor>): Promise<Program> {
  const compiled = compileGraph(graph, { outputs });
  return Program.create(compiled, { threads: 1 });
}

/** Moves values of two operands so far apart that a small step never changes which one is larger. */
function spread(values: readonly Float32Array[]): void {
  for (const [operand, array] of values.entries()) {
    for (let i = 0; i < array.length; i++) {
      array[i] = Math.round(at([...array], i) * 10) / 5 + operand * 0.1;
    }
  }
}

function randomArray(shape: readonly number[], random: () => number): Float32Array {
  const length = shape.reduce((product, dim) => product * dim, 1);
  return Float32Array.from({ length }, () => random() * 2 - 1);
}

function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
