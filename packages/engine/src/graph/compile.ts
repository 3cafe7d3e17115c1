import type { Shape } from "./dim.js";
import type { Graph } from "./graph.js";
import {
  writeModel,
  type InitializerRecord,
  type NodeRecord,
  type ValueRecord,
} from "./onnx/model-proto.js";
import type { Dtype, GraphNode, Tensor } from "./tensor.js";

/** Helpers for a rule that rewrites a node. */
interface LoweringScope {
  /** The name of a constant of rank 0. */
  scalar(value: number): string;
  /** The name of the constant list of one axis. */
  axis(value: number): string;
  /** A name that no other value has. */
  fresh(): string;
  /** Whether anything reads an output of the node. */
  isRead(output: number): boolean;
}

/** Rewrites one operator for a device that computes it wrongly or not at all. */
export interface LoweringRule {
  readonly name: string;
  /** The operators that replace a node, or undefined if the rule does not apply. */
  lower(
    node: GraphNode,
    record: NodeRecord,
    scope: LoweringScope,
  ): readonly NodeRecord[] | undefined;
}

/** The outputs to compute, and values known beforehand. */
export interface CompileOptions {
  readonly outputs: Readonly<Record<string, Tensor>>;
  /** Intermediate values that are fed instead of computed, by the name of their feed. */
  readonly given?: Readonly<Record<string, Tensor>>;
  /** Inputs that are stored with the model, so that the runtime can pack them once for its kernels. */
  readonly stored?: Readonly<Record<string, StoredData>>;
}

/** Data of an input that is stored with the model. */
export type StoredData = Float32Array | Int8Array;

/** A feed or a result of a compiled graph. */
export interface Port {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: Shape;
}

/** Options of compilation. */
export interface WriteOptions {
  /** Put the output that ends a run first. @default true */
  readonly completion?: boolean;
}

/** An ONNX model with the metadata that its runner needs. */
export interface CompiledGraph {
  /** The model for a device, by the device's rules. */
  write(rules?: readonly LoweringRule[], options?: WriteOptions): Uint8Array;
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /**
   * Stored inputs, kept beside the model: inside it they would exist twice while it is
   * handed over.
   */
  readonly stored: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  /** Feeds that the runner computes: shapes as data. */
  readonly shapeFeeds: readonly { readonly name: string; readonly value: Shape }[];
}

/**
 * The name of an output that is no tensor and comes first. onnxruntime-node writes every requested
 * result into the array it was given and then copies all of them once more; it refuses this output
 * before it starts to copy, when the results are already in place. See `execution/program.ts`.
 */
export const completionOutput = "finished";

/** Compiles the part of a graph that `outputs` need. */
export function compileGraph(graph: Graph, options: CompileOptions): CompiledGraph {
  const { outputs, given = {}, stored = {} } = options;
  const names = new Map<number, string>();
  for (const [name, tensor] of Object.entries(given)) names.set(tensor.id, name);
  const givenIds = new Set(names.keys());
  const { nodes, needed } = liveNodes(graph, Object.values(outputs), givenIds);

  const ports: Port[] = [];
  const initializers: InitializerRecord[] = [];
  const storedBytes: { name: string; bytes: Uint8Array }[] = [];
  for (const [name, tensor] of Object.entries(given)) {
    if (needed.has(tensor.id)) ports.push({ name, dtype: tensor.dtype, shape: tensor.shape });
  }
  for (const [name, tensor] of graph.inputs) {
    if (!needed.has(tensor.id) || givenIds.has(tensor.id)) continue;
    names.set(tensor.id, name);
    const data = stored[name];
    if (data === undefined) {
      ports.push({ name, dtype: tensor.dtype, shape: tensor.shape });
      continue;
    }
    initializers.push(storedInput(name, tensor, data));
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    storedBytes.push({ name, bytes });
  }
  for (const { tensor, values } of graph.constants.values()) {
    if (!needed.has(tensor.id)) continue;
    names.set(tensor.id, `constant.${tensor.id}`);
    initializers.push(constant(`constant.${tensor.id}`, tensor, values));
  }
  const shapeFeeds = [...graph.shapeInputs.values()]
    .filter(({ tensor }) => needed.has(tensor.id))
    .map(({ tensor, value }) => ({ name: `shape.${tensor.id}`, tensor, value }));
  for (const { name, tensor } of shapeFeeds) names.set(tensor.id, name);

  const aliases = nameOutputs(outputs, names);
  const computed = nodes.filter((node) => node.type !== "Identity");
  const outputPorts = Object.entries(outputs).map(([name, { dtype, shape }]) => ({
    name,
    dtype,
    shape,
  }));
  const feeds: ValueRecord[] = [
    ...ports,
    ...shapeFeeds.map(({ name, tensor }) => ({ name, dtype: tensor.dtype, shape: tensor.shape })),
  ];
  const write: CompiledGraph["write"] = (rules = [], { completion = true } = {}) => {
    const first = { name: completionOutput, dtype: "float32", shape: "sequence" } as const;
    const own = new OwnConstants();
    const records = computed.flatMap((node) => {
      const record = nodeRecord(node, names);
      const scope = own.scopeOf((output) => needed.has(node.outputs[output]?.id ?? -1));
      for (const rule of rules) {
        const lowered = rule.lower(node, record, scope);
        if (lowered !== undefined) return lowered;
      }
      return [record];
    });
    return writeModel({
      nodes: [...(completion ? [completionNode] : []), ...records, ...aliases],
      initializers: [...initializers, ...own.records.values()],
      inputs: feeds,
      outputs: [...(completion ? [first] : []), ...outputPorts],
    });
  };
  return { write, inputs: ports, outputs: outputPorts, stored: storedBytes, shapeFeeds };
}

/** Constants and nodes that the rules of a device add to a model. */
class OwnConstants {
  readonly records = new Map<string, InitializerRecord>();
  #values = 0;

  scopeOf(isRead: LoweringScope["isRead"]): LoweringScope {
    return {
      scalar: (value) =>
        this.#add(`lowered.scalar.${value}`, "float32", [], Float32Array.of(value)),
      axis: (value) =>
        this.#add(`lowered.axis.${value}`, "int64", [1], BigInt64Array.of(BigInt(value))),
      fresh: () => `lowered.${this.#values++}`,
      isRead,
    };
  }

  #add(name: string, dtype: Dtype, dims: readonly number[], { buffer }: { buffer: ArrayBuffer }) {
    this.records.set(name, { name, dtype, dims, data: new Uint8Array(buffer) });
    return name;
  }
}

const completionNode: NodeRecord = {
  type: "SequenceEmpty",
  domain: "",
  inputs: [],
  outputs: [completionOutput],
  attributes: {},
};

/** Nodes that the outputs depend on, not looking behind given values. */
function liveNodes(
  graph: Graph,
  outputs: readonly Tensor[],
  given: ReadonlySet<number>,
): { nodes: readonly GraphNode[]; needed: ReadonlySet<number> } {
  const needed = new Set(outputs.map((tensor) => tensor.id));
  const nodes = graph.nodes.toReversed().filter((node) => {
    if (!node.outputs.some(({ id }) => needed.has(id) && !given.has(id))) return false;
    for (const input of node.inputs) if (input !== null) needed.add(input.id);
    return true;
  });
  return { nodes: nodes.toReversed(), needed };
}

/**
 * Follows identity nodes, which exist for differentiation only, to their source. ONNX Runtime
 * would copy such a value where it is a result.
 */
function origin(tensor: Tensor, names: ReadonlyMap<number, string>): Tensor {
  const [source] = tensor.node?.type === "Identity" ? tensor.node.inputs : [];
  return source == null || names.has(tensor.id) ? tensor : origin(source, names);
}

/** Gives computed outputs their public name; a value that already has a name is copied under the new one. */
function nameOutputs(
  outputs: Readonly<Record<string, Tensor>>,
  names: Map<number, string>,
): readonly NodeRecord[] {
  const aliases: NodeRecord[] = [];
  for (const [name, tensor] of Object.entries(outputs)) {
    const { id } = origin(tensor, names);
    const existing = names.get(id);
    if (existing === undefined) {
      names.set(id, name);
    } else {
      aliases.push({
        type: "Identity",
        domain: "",
        inputs: [existing],
        outputs: [name],
        attributes: {},
      });
    }
  }
  return aliases;
}

function nodeRecord(node: GraphNode, names: ReadonlyMap<number, string>): NodeRecord {
  const nameOf = (tensor: Tensor): string => {
    const { id } = origin(tensor, names);
    return names.get(id) ?? `value.${id}`;
  };
  return {
    type: node.type,
    domain: node.domain,
    inputs: node.inputs.map((input) => (input === null ? "" : nameOf(input))),
    outputs: node.outputs.map(nameOf),
    attributes: node.attributes,
  };
}

function constant(name: string, tensor: Tensor, values: readonly number[]): InitializerRecord {
  const { dtype } = tensor;
  return { name, dtype, dims: fixedDims(tensor.shape), data: constantBytes(dtype, values) };
}

function constantBytes(dtype: Dtype, values: readonly number[]): Uint8Array {
  if (dtype === "uint8") return Uint8Array.from(values);
  const array = dtype === "int64" ? BigInt64Array.from(values, BigInt) : Float32Array.from(values);
  return new Uint8Array(array.buffer);
}

function storedInput(name: string, tensor: Tensor, data: StoredData): InitializerRecord {
  const dims = fixedDims(tensor.shape);
  const size = dims.reduce((product, dim) => product * dim, 1);
  if (size !== data.length) {
    throw new Error(`stored input "${name}" has ${data.length} elements instead of ${size}`);
  }
  return { name, dtype: tensor.dtype, dims, data: { externalBytes: data.byteLength } };
}

function fixedDims(shape: Shape): readonly number[] {
  return shape.map((dim) => {
    const { constant: value } = dim;
    if (value === undefined)
      throw new Error(`stored data cannot have the open size ${dim.toString()}`);
    return value;
  });
}
