import { gatedGelu, gatedSilu, split } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { at } from "../../util/arrays.js";
import type { ModelConfig } from "../model-config.js";
import type { Projector } from "../transformer.js";

/** A dense block: `down(activation(gate(rows)) * up(rows))`. */
export function denseBlock(
  { activation, intermediateSize }: ModelConfig,
  project: Projector,
  rows: Tensor,
): Tensor {
  const projections = project("gateUp", rows);
  const [gate, up] =
    projections.length === 1
      ? split(at(projections, 0), 1, [intermediateSize, intermediateSize])
      : projections;
  if (gate === undefined || up === undefined) throw new Error("a dense block needs gate and up");
  const gated = activation === "gelu" ? gatedGelu : gatedSilu;
  return at(project("down", gated(gate, up)), 0);
}
