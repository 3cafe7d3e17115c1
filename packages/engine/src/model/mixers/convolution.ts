import { multiply, split } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { at } from "../../util/arrays.js";
import type { ModelConfig } from "../model-config.js";
import type { Projector } from "../transformer.js";
import type { LayerWeights } from "../weights.js";
import { present } from "./present.js";
import type { Recurrence } from "./recurrence.js";

/** A short convolution between two gates (LFM2), applied to normed rows; its result is added to the hidden states. */
export function gatedConvolution(
  { hiddenSize }: ModelConfig,
  weights: LayerWeights<Tensor>,
  project: Projector,
  rows: Tensor,
  recurrence: Recurrence,
): Tensor {
  const sizes = [hiddenSize, hiddenSize, hiddenSize];
  const [before, after, value] = split(at(project("convIn", rows), 0), 1, sizes);
  const opened = multiply(present(before), present(value));
  const mixed = recurrence.convolve(opened, present(weights.conv), weights.convBias);
  return at(project("convOut", multiply(present(after), mixed)), 0);
}
