import { describeShape, shapeOf, type DimLike, type Shape } from "./dim.js";
import type { Attribute, Dtype, GraphNode, Tensor, Vjp } from "./tensor.js";

/** Arguments of `Graph.apply`. */
export interface NodeSpec {
  readonly type: string;
  /** "" is standard ONNX, "com.microsoft" holds ONNX Runtime's fused operators. */
  readonly domain?: "" | "com.microsoft";
  readonly inputs: readonly (Tensor | null)[];
  readonly outputs: readonly { readonly shape: Shape; readonly dtype?: Dtype }[];
  readonly attributes?: Readonly<Record<string, Attribute>>;
  readonly vjp?: Vjp;
  /** Whether computing it again would cost a matrix product. @default by its type */
  readonly isDear?: boolean;
  /** The inputs that `vjp` gives gradients for. @default inputs */
  readonly gradientInputs?: readonly (Tensor | null)[];
}

/** A small constant stored inside the graph. */
export interface Constant {
  readonly tensor: Tensor;
  readonly values: readonly number[];
}

/**
 * An append-only program of ONNX operators.
 *
 * Nodes are kept in the order they were added, which is a valid execution order. Sizes that ONNX wants
 * as data (reshape targets) become constants when they are fixed and extra inputs when they are
 * symbolic; the runner computes those from the sizes of a run, so callers never see them.
 */
export class Graph {
  readonly nodes: GraphNode[] = [];
  readonly inputs = new Map<string, Tensor>();
  readonly constants = new Map<number, Constant>();
  readonly shapeInputs = new Map<number, { readonly tensor: Tensor; readonly value: Shape }>();
  readonly #shared = new Map<string, Tensor>();
  #nextId = 0;

  /** Declares a value that is given when the graph runs. */
  input(name: string, shape: readonly DimLike[], dtype: Dtype = "float32"): Tensor {
    if (this.inputs.has(name)) throw new Error(`the graph already has an input "${name}"`);
    const tensor = this.#tensor(dtype, shapeOf(shape));
    this.inputs.set(name, tensor);
    return tensor;
  }

  /** A number of rank 0. */
  scalar(value: number): Tensor {
    return this.#constant("float32", [], [value]);
  }

  /** A small table of numbers. */
  floats(values: readonly number[], shape: readonly number[]): Tensor {
    return this.#constant("float32", shape, values);
  }

  /** A number from 0 to 255. */
  byte(value: number, shape: readonly number[] = []): Tensor {
    return this.#constant("uint8", shape, [value]);
  }

  /** A list of whole numbers, such as axes. */
  integers(values: readonly number[]): Tensor {
    return this.#constant("int64", [values.length], values);
  }

  /** A shape as data. */
  shapeValue(shape: Shape): Tensor {
    const fixed = shape.map((dim) => dim.constant);
    if (fixed.every((dim) => dim !== undefined)) return this.integers(fixed);
    return this.#share(`shape ${describeShape(shape)}`, () => {
      const tensor = this.#tensor("int64", shapeOf([shape.length]));
      this.shapeInputs.set(tensor.id, { tensor, value: shape });
      return tensor;
    });
  }

  /** Adds a node and returns its outputs. */
  apply(spec: NodeSpec): readonly Tensor[] {
    const outputs: Tensor[] = [];
    const node: GraphNode = {
      type: spec.type,
      domain: spec.domain ?? "",
      inputs: spec.inputs,
      outputs,
      attributes: spec.attributes ?? {},
      vjp: spec.vjp,
      isDear: spec.isDear ?? false,
      gradientInputs: spec.gradientInputs ?? spec.inputs,
    };
    for (const { shape, dtype } of spec.outputs) {
      outputs.push({ ...this.#tensor(dtype ?? "float32", shape), node });
    }
    this.nodes.push(node);
    return outputs;
  }

  /** Adds a node with exactly one output. */
  applyOne(
    spec: Omit<NodeSpec, "outputs"> & { readonly shape: Shape; readonly dtype?: Dtype },
  ): Tensor {
    const { shape, dtype = "float32", ...rest } = spec;
    const [output] = this.apply({ ...rest, outputs: [{ shape, dtype }] });
    if (output === undefined) throw new Error(`${spec.type} has no output`);
    return output;
  }

  #constant(dtype: Dtype, shape: readonly number[], values: readonly number[]): Tensor {
    return this.#share(`${dtype} [${shape.join()}] ${values.join()}`, () => {
      const tensor = this.#tensor(dtype, shapeOf(shape));
      this.constants.set(tensor.id, { tensor, values });
      return tensor;
    });
  }

  #share(key: string, make: () => Tensor): Tensor {
    const existing = this.#shared.get(key);
    if (existing !== undefined) return existing;
    const made = make();
    this.#shared.set(key, made);
    return made;
  }

  #tensor(dtype: Dtype, shape: Shape): Tensor {
    return { graph: this, id: this.#nextId++, dtype, shape };
  }
}
