import { describe, expect, it } from "vitest";
import { processor } from "../execution/device.js";
import { gpuDevice } from "./device.js";
import { Program } from "../execution/program.js";
import { compileGraph, type CompiledGraph } from "../graph/compile.js";
import { Dim } from "../graph/dim.js";
import { differentiate } from "../graph/differentiate.js";
import { Graph } from "../graph/graph.js";
import { batchMatmul, logSoftmax, rmsNorm } from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";

const rows = Dim.symbol("rows");
const sizes = { rows: 3 };

/** Numbers that are all different. */
function numbers(length: number, seed: number): Float32Array {
  return Float32Array.from({ length }, (_, index) => Math.sin(index * 1.7 + seed));
}

/** A graph's results on the processor, with the rules of a GPU or without. */
async function run(compiled: CompiledGraph, isLowered: boolean): Promise<Float32Array[]> {
  const { rules } = isLowered ? gpuDevice() : processor;
  const program = await Program.create(compiled, { threads: 1, device: { ...processor, rules } });
  const feeds: Record<string, Float32Array> = {};
  for (const [index, { name, shape }] of compiled.inputs.entries()) {
    const length = shape.reduce((product, dim) => product * dim.evaluate(sizes), 1);
    feeds[name] = numbers(length, index);
  }
  const results: Record<string, Float32Array> = {};
  for (const [name, length] of program.resultLengths(sizes)) {
    results[name] = new Float32Array(length);
  }
  await program.run(feeds, results, sizes);
  await program.release();
  return Object.values(results);
}

function norm(graph: Graph): Record<string, Tensor> {
  const value = graph.input("value", [rows, 8]);
  const weight = graph.input("weight", [8]);
  const normalized = rmsNorm(value, weight, 1e-6);
  const gradient = graph.input("gradient", [rows, 8]);
  const [ofValue, ofWeight] = differentiate([{ of: normalized, gradient }], [value, weight]);
  if (ofValue === undefined || ofWeight === undefined) throw new Error("no gradients");
  return { normalized, ofValue, ofWeight };
}

function products(graph: Graph): Record<string, Tensor> {
  const left = graph.input("left", [2, rows, 4]);
  const right = graph.input("right", [2, rows, 4]);
  return {
    scaled: batchMatmul(left, right, { transposeRight: true, scale: 0.25 }),
    turned: batchMatmul(left, right, { transposeLeft: true }),
  };
}

describe("operators lowered for a GPU", () => {
  it.each([
    ["a norm and its gradients", norm],
    ["products of transposed and scaled operands", products],
    [
      "the logarithm of a softmax",
      (graph: Graph) => ({ logprobs: logSoftmax(graph.input("logits", [rows, 9])) }),
    ],
  ])("give the same results for %s", async (_, build) => {
    const graph = new Graph();
    const compiled = compileGraph(graph, { outputs: build(graph) });
    const [expected, actual] = [await run(compiled, false), await run(compiled, true)];
    expect(compiled.write(gpuDevice().rules)).not.toEqual(compiled.write());
    for (const [index, values] of expected.entries()) {
      for (const [place, value] of values.entries()) {
        expect(actual[index]?.[place]).toBeCloseTo(value, 5);
      }
    }
  });
});
