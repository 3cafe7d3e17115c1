import {
  concat,
  dimAt,
  exp,
  gatedSilu,
  negate,
  reshape,
  rmsNorm,
  sigmoid,
  silu,
  split,
  stateDecay,
} from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { at } from "../../util/arrays.js";
import type { ModelConfig } from "../model-config.js";
import type { Projector } from "../transformer.js";
import type { LayerWeights } from "../weights.js";
import type { Recurrence } from "./recurrence.js";
import { present } from "./present.js";

/** Epsilon under the root when keys are normalized. */
const lengthEpsilon = 1e-6;

/** The gated delta rule (Qwen3.5), applied to normed rows; its result is added to the hidden states. */
export function deltaRule(
  config: ModelConfig,
  weights: LayerWeights<Tensor>,
  project: Projector,
  rows: Tensor,
  recurrence: Recurrence,
): Tensor {
  const sizes = present(config.deltaRule);
  const { keyHeads, valueHeads, keyDim, valueDim } = sizes;
  const [keys, values] = [keyHeads * keyDim, valueHeads * valueDim];
  const inputs = project("deltaIn", rows);
  const [strength, decay] = project("deltaGates", rows);
  const mixed = silu(
    recurrence.convolve(concat(inputs.slice(0, 3), 1), present(weights.deltaConv)),
  );
  const [query, key, value] = split(mixed, 1, [keys, keys, values]);
  const factor = negate(exp(present(weights.deltaDecay)));
  const read = recurrence.scan(
    {
      query: unitLength(present(query), keyHeads, keyDim, keyDim ** -0.5),
      key: unitLength(present(key), keyHeads, keyDim),
      value: present(value),
      decay: stateDecay(present(decay), present(weights.deltaStep), factor),
      strength: sigmoid(present(strength)),
    },
    sizes,
  );
  const perHead = reshape(read, [dimAt(read, 0), valueHeads, valueDim]);
  const normed = rmsNorm(perHead, present(weights.deltaNorm), config.normEpsilon);
  const gated = gatedSilu(at(inputs, 3), reshape(normed, [dimAt(read, 0), values]));
  return at(project("deltaOut", gated), 0);
}

/** Heads divided by their length, times a factor: a norm over the sum of squares instead of their mean. */
function unitLength(rows: Tensor, heads: number, width: number, factor = 1): Tensor {
  const weight = rows.graph.floats(Array<number>(width).fill(factor * width ** -0.5), [width]);
  const perHead = reshape(rows, [dimAt(rows, 0), heads, width]);
  return reshape(rmsNorm(perHead, weight, lengthEpsilon / width), rows.shape);
}
