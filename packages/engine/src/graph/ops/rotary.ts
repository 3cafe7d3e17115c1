import { describeShape, Dim } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { negate } from "./elementwise.js";
import { dimAt } from "./shape.js";

/** Tables of cosines and sines by position, each [positions, rotating dimensions of a head / 2]. */
export interface RotaryTables {
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/**
 * Rotates every head of `value` [tokens, 1, heads * headDim] by its token's position ([tokens, 1]).
 * Where tables are narrower than half a head, the rest of it stays as it is. Tokens are a batch of
 * sequences of one: ONNX Runtime wants sequences no longer than the tables. A rotation's transpose is the
 * rotation by the negative angle, so the gradient negates the sines.
 */
export function rotary(
  value: Tensor,
  positions: Tensor,
  tables: RotaryTables,
  heads: number,
): Tensor {
  if (value.shape.length !== 3) {
    throw new Error(`rotary needs [tokens, 1, width], got ${describeShape(value.shape)}`);
  }
  const rotating = Dim.of(2).times(dimAt(tables.cos, 1));
  const isWhole = rotating.times(heads).equals(dimAt(value, 2));
  const rotaryDim = isWhole ? 0 : rotating.constant;
  if (rotaryDim === undefined)
    throw new Error("the rotating part of a head must have a fixed size");
  return value.graph.applyOne({
    type: "RotaryEmbedding",
    domain: "com.microsoft",
    inputs: [value, positions, tables.cos, tables.sin],
    attributes: { interleaved: 0, num_heads: heads, rotary_embedding_dim: rotaryDim },
    shape: value.shape,
    vjp: ([gradient]) => [
      gradient && rotary(gradient, positions, { cos: tables.cos, sin: negate(tables.sin) }, heads),
    ],
  });
}
