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

/** An ONNX attribute; floats are boxed because ONNX tells 1 and 1.0 apart. */
export type Attribute = number | string | readonly number[] | { readonly float: number };

/**
 * Vector-Jacobian product: from the gradients of a node's outputs (absent where nothing flows) to the
 * gradients of its gradient inputs. `wants` tells which inputs need one, so that no other work is emitted.
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
  /** Whether computing it again would cost a matrix product, though its type does not say so. */
  readonly isDear: boolean;
  /** What `vjp` speaks of; differs from `inputs` where one gradient covers several nodes. */
  readonly gradientInputs: readonly (Tensor | null)[];
}
