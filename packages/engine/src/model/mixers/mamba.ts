import {
  add,
  dimAt,
  exp,
  gatedSilu,
  maximum,
  minimum,
  multiply,
  negate,
  reshape,
  rmsNorm,
  silu,
  split,
  stateDecay,
} from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { at } from "../../util/arrays.js";
import type { ModelConfig } from "../model-config.js";
import type { Projector } from "../transformer.js";
import type { LayerWeights } from "../weights.js";
import { present } from "./present.js";
import type { Recurrence } from "./recurrence.js";

/** Mamba 2 (Granite 4 H), applied to normed rows; its result is added to the hidden states. */
export function mamba(
  config: ModelConfig,
  weights: LayerWeights<Tensor>,
  project: Projector,
  rows: Tensor,
  recurrence: Recurrence,
): Tensor {
  const { heads, headDim, groups, stateSize, timeStep } = present(config.mamba);
  const [width, inner] = [heads * headDim, groups * stateSize];
  const tokens = dimAt(rows, 0);
  const input = at(project("mambaIn", rows), 0);
  const [gate, mixing, steps] = split(input, 1, [width, width + 2 * inner, heads]);
  const mixed = silu(
    recurrence.convolve(present(mixing), present(weights.mambaConv), weights.mambaConvBias),
  );
  const [value, key, query] = split(mixed, 1, [width, inner, inner]);
  const ones = rows.graph.floats(Array<number>(heads).fill(1), [heads]);
  const step = bounded(stateDecay(present(steps), present(weights.mambaStep), ones), timeStep);
  const perHead = reshape(present(value), [tokens, heads, headDim]);
  const added = multiply(perHead, reshape(step, [tokens, heads, 1]));
  const read = recurrence.scan(
    {
      query: present(query),
      key: present(key),
      value: reshape(added, [tokens, width]),
      decay: multiply(step, negate(exp(present(weights.mambaDecay)))),
    },
    { keyHeads: groups, valueHeads: heads, keyDim: stateSize, valueDim: headDim },
  );
  const skipped = multiply(perHead, reshape(present(weights.mambaSkip), [heads, 1]));
  const whole = add(read, reshape(skipped, [tokens, width]));
  const gated = gatedSilu(present(gate), whole);
  return at(project("mambaOut", rmsNorm(gated, present(weights.mambaNorm), config.normEpsilon)), 0);
}

function bounded(steps: Tensor, [least, most]: readonly [number, number]): Tensor {
  // Steps are already positive.
  const lower = least > 0 ? maximum(steps, steps.graph.scalar(least)) : steps;
  return most === Infinity ? lower : minimum(lower, steps.graph.scalar(most));
}
