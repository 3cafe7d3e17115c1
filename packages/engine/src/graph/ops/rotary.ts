import { describeShape } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { negate } from "./elementwise.js";

/** Tables of cosines and sines by position, each [positions, headDim / 2]. */
export interface RotaryTables {
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/**
 * Rotates every head of `value` [1, tokens, heads * headDim] by its token's position ([1, tokens]).
 * A rotation's transpose is the rotation by the negative angle, so the gradient negates the sines.
 */
export function rotary(
  value: Tensor,
  positions: Tensor,
  tables: RotaryTables,
  heads: number,
): Tensor {
  if (value.shape.length !== 3) {
    throw new Error(`rotary needs [1, tokens, width], got ${describeShape(value.shape)}`);
  }
  return value.graph.applyOne({
    type: "RotaryEmbedding",
    domain: "com.microsoft",
    inputs: [value, positions, tables.cos, tables.sin],
    attributes: { interleaved: 0, num_heads: heads, rotary_embedding_dim: 0 },
    shape: value.shape,
    vjp: ([gradient]) => [
      gradient && rotary(gradient, positions, { cos: tables.cos, sin: negate(tables.sin) }, heads),
    ],
  });
}
