import type { Shape } from "../dim.js";
import type { Attribute, Dtype } from "../tensor.js";
import { ProtobufWriter } from "./protobuf.js";

// Field numbers are those of onnx.proto3. Each function writes one message type.

const irVersion = 9;
const opsetVersion = 17;
const elementTypes: Readonly<Record<Dtype, number>> = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
};
const externalLocation = 1;
const attributeTypes = { float: 1, int: 2, string: 3, ints: 7 } as const;

/** An operator call by names; an empty name is an absent optional input. */
export interface NodeRecord {
  readonly type: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

/** Data stored in the model, or beside it: the model then has only its name and size. */
export interface InitializerRecord {
  readonly name: string;
  readonly dtype: Dtype;
  readonly dims: readonly number[];
  readonly data: Uint8Array | { readonly externalBytes: number };
}

/** A graph input or output; "sequence" is a list of tensors. */
export interface ValueRecord {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: Shape | "sequence";
}

/** A whole model by parts. */
export interface ModelRecord {
  readonly nodes: readonly NodeRecord[];
  readonly initializers: readonly InitializerRecord[];
  readonly inputs: readonly ValueRecord[];
  readonly outputs: readonly ValueRecord[];
}

/** Serializes a model in the ONNX format. */
export function writeModel(model: ModelRecord): Uint8Array {
  const graph = new ProtobufWriter();
  for (const record of model.nodes) graph.message(1, node(record));
  graph.string(2, "graph");
  for (const record of model.initializers) graph.message(5, initializer(record));
  for (const record of model.inputs) graph.message(11, valueInfo(record));
  for (const record of model.outputs) graph.message(12, valueInfo(record));
  return new ProtobufWriter()
    .varint(1, irVersion)
    .message(7, graph)
    .message(8, operatorSet("", opsetVersion))
    .message(8, operatorSet("com.microsoft", 1))
    .finish();
}

function operatorSet(domain: string, version: number): ProtobufWriter {
  return new ProtobufWriter().string(1, domain).varint(2, version);
}

function node(record: NodeRecord): ProtobufWriter {
  const writer = new ProtobufWriter();
  for (const name of record.inputs) writer.string(1, name);
  for (const name of record.outputs) writer.string(2, name);
  writer.string(4, record.type);
  for (const [name, value] of Object.entries(record.attributes)) {
    writer.message(5, attribute(name, value));
  }
  return writer.string(7, record.domain);
}

function attribute(name: string, value: Attribute): ProtobufWriter {
  const writer = new ProtobufWriter().string(1, name);
  if (typeof value === "number") return writer.varint(3, value).varint(20, attributeTypes.int);
  if (typeof value === "string") return writer.string(4, value).varint(20, attributeTypes.string);
  if ("float" in value) return writer.float(2, value.float).varint(20, attributeTypes.float);
  for (const item of value) writer.varint(8, item);
  return writer.varint(20, attributeTypes.ints);
}

function initializer(record: InitializerRecord): ProtobufWriter {
  const writer = new ProtobufWriter();
  for (const dim of record.dims) writer.varint(1, dim);
  writer.varint(2, elementTypes[record.dtype]).string(8, record.name);
  const { data } = record;
  if (data instanceof Uint8Array) return writer.bytes(9, data);
  return writer
    .message(13, keyValue("location", record.name))
    .message(13, keyValue("length", String(data.externalBytes)))
    .varint(14, externalLocation);
}

function keyValue(key: string, value: string): ProtobufWriter {
  return new ProtobufWriter().string(1, key).string(2, value);
}

function valueInfo(record: ValueRecord): ProtobufWriter {
  const type = new ProtobufWriter();
  if (record.shape === "sequence") {
    const element = new ProtobufWriter().message(1, tensorType(record.dtype));
    type.message(4, new ProtobufWriter().message(1, element));
  } else {
    type.message(1, tensorType(record.dtype, record.shape));
  }
  return new ProtobufWriter().string(1, record.name).message(2, type);
}

function tensorType(dtype: Dtype, shape?: Shape): ProtobufWriter {
  const writer = new ProtobufWriter().varint(1, elementTypes[dtype]);
  if (shape === undefined) return writer;
  const dims = new ProtobufWriter();
  for (const dim of shape) {
    const { constant } = dim;
    const entry = new ProtobufWriter();
    if (constant === undefined) entry.string(2, dim.toString());
    else entry.varint(1, constant);
    dims.message(1, entry);
  }
  return writer.message(2, dims);
}
