import { describe, expect, it } from "vitest";
import { differentiate } from "./differentiate.js";
import { Graph } from "./graph.js";
import { keptValues, type KeptKind } from "./kept-values.js";
import { exp, linear, multiply, reshape, transpose, widened } from "./ops/index.js";

/** `exp(x W^T) * exp(x W^T) W`, with the gradient of x. */
function build(kind: KeptKind) {
  const graph = new Graph();
  const value = graph.input("value", [3, 4]);
  const weight = graph.input("weight", [4, 4]);
  const product = linear(value, weight);
  const power = exp(product);
  const result = reshape(multiply(power, power), [12]);
  const seed = { of: result, gradient: graph.input("seed", [12]) };
  const gradients = differentiate([seed], [value]);
  return { product, power, kept: keptValues([result], gradients, kind) };
}

describe("keptValues", () => {
  it("keeps exactly the values that gradients read", () => {
    const { power, kept } = build("all");
    expect(kept).toEqual([power]);
  });

  it("keeps only products when the rest is cheap to recompute", () => {
    const { product, kept } = build("dear");
    expect(kept).toEqual([product]);
  });

  it("keeps a rearrangement only if its source is not kept", () => {
    const graph = new Graph();
    const value = graph.input("value", [3, 4]);
    const weight = graph.input("weight", [4, 4]);
    // The gradient of a power reads the power, which is cheap to compute from the product.
    const product = linear(value, weight);
    const turned = transpose(exp(product), [1, 0]);
    const plain = transpose(linear(value, weight), [1, 0]);
    const result = multiply(turned, plain);
    const seed = { of: result, gradient: graph.input("seed", [4, 3]) };
    const kept = keptValues([result], differentiate([seed], [value]), "dear");
    expect(kept).toEqual([product, plain]);
  });

  it("does not keep a widened int8 weight", () => {
    const graph = new Graph();
    const value = graph.input("value", [2, 4]);
    const transposed = graph.input("weight", [3, 4], "int8");
    const scale = graph.input("scale", [3]);
    const format = { digits: 3, bits: 7 } as const;
    const weight = { transposed, values: transposed, scale, format, gradientFormat: format };
    const product = linear(value, widened(weight));
    const seed = { of: product, gradient: graph.input("gradient", product.shape) };
    const gradients = differentiate([seed], [value]);
    for (const kind of ["all", "dear"] as const) {
      expect(keptValues([product], gradients, kind)).toEqual([]);
    }
  });

  it("keeps the source of a view", () => {
    const graph = new Graph();
    const value = graph.input("value", [3, 4]);
    const power = exp(value);
    const view = reshape(power, [4, 3]);
    const square = multiply(view, view);
    const seed = { of: square, gradient: graph.input("seed", [4, 3]) };
    expect(keptValues([square], differentiate([seed], [value]), "all")).toEqual([power]);
  });
});
