import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import { add, divide, multiply, reduceSum, squareRoot, subtract } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";

const settingNames = [
  "clip",
  "beta1",
  "oneMinusBeta1",
  "beta2",
  "oneMinusBeta2",
  "eps",
  "stepSize",
  "decay",
] as const;

/** A scalar of the update. */
export type AdamSetting = (typeof settingNames)[number];

/** Name of the result that takes the place of a feed. */
export function nextName(feed: "values" | "firstMoment" | "secondMoment"): string {
  return `next.${feed}`;
}

/**
 * The update of AdamW for any number of parameters. Each array that is replaced is last read
 * to compute its successor, so that a result may be written to the array of its feed.
 */
export function adamUpdate(): CompiledGraph {
  const graph = new Graph();
  const length = Dim.symbol("length");
  const array = (name: string): Tensor => graph.input(name, [length]);
  const [values, firstMoment, secondMoment] = [
    array("values"),
    array("firstMoment"),
    array("secondMoment"),
  ];
  const setting = (name: AdamSetting): Tensor => graph.input(name, [1]);
  const gradient = multiply(array("gradient"), setting("clip"));
  const first = add(
    multiply(firstMoment, setting("beta1")),
    multiply(gradient, setting("oneMinusBeta1")),
  );
  const second = add(
    multiply(secondMoment, setting("beta2")),
    multiply(multiply(gradient, gradient), setting("oneMinusBeta2")),
  );
  const direction = divide(first, add(squareRoot(second), setting("eps")));
  const update = add(multiply(direction, setting("stepSize")), multiply(values, setting("decay")));
  return compileGraph(graph, {
    outputs: {
      updateSquares: reduceSum(multiply(update, update), [0]),
      [nextName("values")]: subtract(values, update),
      [nextName("firstMoment")]: first,
      [nextName("secondMoment")]: second,
    },
  });
}
