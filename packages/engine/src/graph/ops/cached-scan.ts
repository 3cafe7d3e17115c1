import { dimAt } from "./shape.js";
import type { Tensor } from "../tensor.js";
import { at } from "../../util/arrays.js";

/** Operands of `cachedScan`: some new tokens of every sequence, and the states before them. */
export interface CachedScanOperands {
  /** [sequences, newTokens, keyHeads * keyDim] */
  readonly query: Tensor;
  readonly key: Tensor;
  /** [sequences, newTokens, valueHeads * valueDim] */
  readonly value: Tensor;
  /** [sequences, newTokens, valueHeads] */
  readonly decay: Tensor;
  /** [sequences, newTokens, valueHeads]; absent where values are merely added. */
  readonly strength?: Tensor | undefined;
  /** [sequences, valueHeads, keyDim, valueDim] */
  readonly state: Tensor;
}

/** The result of `chunkedScan`, computed token by token, and the final states; inference only. */
export function cachedScan(operands: CachedScanOperands): {
  readonly result: Tensor;
  readonly state: Tensor;
} {
  const { query, key, value, decay, strength, state } = operands;
  const [valueHeads, keyDim] = [dimAt(state, 1).constant, dimAt(state, 2).constant];
  const keyWidth = dimAt(key, 2).constant;
  if (valueHeads === undefined || keyDim === undefined || keyWidth === undefined) {
    throw new Error("the sizes of a state must be fixed");
  }
  const outputs = value.graph.apply({
    type: "LinearAttention",
    domain: "com.microsoft",
    inputs: [query, key, value, state, decay, ...(strength === undefined ? [] : [strength])],
    attributes: {
      q_num_heads: keyWidth / keyDim,
      kv_num_heads: valueHeads,
      update_rule: strength === undefined ? "gated" : "gated_delta",
      scale: { float: 1 },
    },
    outputs: [{ shape: value.shape }, { shape: state.shape }],
  });
  return { result: at(outputs, 0), state: at(outputs, 1) };
}

/**
 * A causal convolution of new values [sequences, channels, newTokens], with the values before them as its state,
 * [sequences, channels, K - 1]; inference only.
 */
export function cachedConvolution(
  value: Tensor,
  kernel: Tensor,
  bias: Tensor | undefined,
  state: Tensor,
): { readonly result: Tensor; readonly state: Tensor } {
  const outputs = value.graph.apply({
    type: "CausalConvWithState",
    domain: "com.microsoft",
    inputs: [value, kernel, bias ?? null, state],
    outputs: [{ shape: value.shape }, { shape: state.shape }],
  });
  return { result: at(outputs, 0), state: at(outputs, 1) };
}
