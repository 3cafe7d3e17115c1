import type { Shape } from "./dim.js";
import type { Graph } from "./graph.js";

/** Element types that graphs use. */
export type Dtype = "float32" | "int8" | "uint8" | "int32" | "int64" | "bool";

/** A value in a graph: an input, a constant, or one output of a node. */
export interface Tensor {
  readonly graph: Graph;
  readonly id: number;
  readonly dtype: Dtype;
  readonly shape: Shape;
  /** The node that computes it; absent for inputs and constants. */
  readonly node?: GraphNode;
}

/** An ONNX attribute; floats are boxed because ONNX distinguishes 1 from 1.0. */
export type Attribute = number | string | readonly number[] | { readonly float: number };

/**
 * Vector-Jacobian product: from the gradients of a node's outputs (absent where nothing flows) to the
 * gradients of its gradient inputs. `wants` marks the inputs that need one; no other work is emitted.
 */
export type Vjp = (
  outputGradients: readonly (Tensor | undefined)[],
  wants: (inputIndex: number) => boolean,
) => readonly (Tensor | undefined)[];

/** One ONNX operator call. */
export interface GraphNode {
  readonly type: string;
  readonly domain: string;
  readonly inputs: readonly (Tensor | null)[];
  readonly outputs: readonly Tensor[];
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly vjp?: Vjp | undefined;
  /** Whether recomputing it costs a matrix product although its type is another. */
  readonly isDear: boolean;
  /** The inputs that `vjp` gives gradients for; differs from `inputs` where one gradient covers several nodes. */
  readonly gradientInputs: readonly (Tensor | null)[];
}
