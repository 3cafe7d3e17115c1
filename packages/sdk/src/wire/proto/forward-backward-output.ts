import { setOwn } from "../../schema/set-own.js";
import { TensorData, type TensorStorage } from "../../types/tensor-data.js";
import type { ForwardBackwardOutput, LossFnOutput } from "../../types/training.js";
import type { WireInput } from "../wire-types.js";
import { MessageWriter } from "./message-writer.js";
import {
  PackedError,
  readInt64,
  addValues,
  fieldError,
  dtypeOf,
  itemBytes,
  noBytes,
  readValues,
  toSize,
} from "./tensor-codec.js";
import { MessageReader } from "./message-reader.js";

const typeName = "ForwardBackwardOutput";

/** Most datums a record without fields may claim; each of them becomes an empty map. */
const maxBareDatums = 1_000_000;

/** Encodes a forward or forward/backward result; runs of datums with equal layout share a record. */
export function encodeForwardBackwardOutput(
  output: WireInput<"ForwardBackwardOutput">,
): Uint8Array<ArrayBuffer> {
  const writer = new MessageWriter().string(1, output.lossFnOutputType);
  const outputs = output.lossFnOutputs.map(toDenseOutput);
  for (const run of equalLayoutRuns(outputs)) {
    writer.message(2, writeRecord(run, output.lossFnOutputType));
  }
  for (const [name, value] of Object.entries(output.metrics ?? {})) {
    writer.message(3, new MessageWriter().string(1, name).double(2, value));
  }
  return writer.finish();
}

/** Decodes a forward or forward/backward result; tensors are views on `bytes` where they can be. */
export function decodeForwardBackwardOutput(bytes: Uint8Array): ForwardBackwardOutput {
  const r = new MessageReader(bytes);
  const records: RecordMessage[] = [];
  const metrics: Record<string, number> = {};
  let fullType = "";
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) fullType = r.string() ?? fullType;
    else if (field === 2) r.messages(records, readRecord);
    else if (field === 3) r.entry(metrics, 0);
    else r.unknown(field);
  }
  const lossFnOutputs: LossFnOutput[] = [];
  for (const [index, record] of records.entries()) addOutputs(lossFnOutputs, record, index);
  const lossFnOutputType =
    records.length > 0 ? fullType.slice(fullType.lastIndexOf(":") + 1) : fullType || "ArrayRecord";
  return { lossFnOutputType, lossFnOutputs, metrics };
}

/** The outputs of datums with equal layout. */
interface RecordMessage {
  fields: Record<string, BatchedTensorMessage>;
  numDatums: bigint;
}

/** One field of the outputs of several datums. */
interface BatchedTensorMessage {
  data: Uint8Array;
  offsets: Uint8Array;
  dtype: number;
  trailingShape: bigint[];
}

const emptyBatch: BatchedTensorMessage = {
  data: noBytes,
  offsets: noBytes,
  dtype: 0,
  trailingShape: [],
};

function readRecord(r: MessageReader): RecordMessage {
  const message: RecordMessage = { fields: {}, numDatums: 0n };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 2) r.entry(message.fields, emptyBatch, readBatch);
    else if (field === 3) message.numDatums = r.int64() ?? message.numDatums;
    // The type tag repeats the type of the whole output.
    else if (field === 1) r.string();
    else r.unknown(field);
  }
  return message;
}

function readBatch(r: MessageReader): BatchedTensorMessage {
  const message: BatchedTensorMessage = { ...emptyBatch, trailingShape: [] };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) message.data = r.bytes() ?? message.data;
    else if (field === 2) message.offsets = r.bytes() ?? message.offsets;
    else if (field === 3) message.dtype = r.int32() ?? message.dtype;
    else if (field === 4) r.int64s(message.trailingShape);
    else r.unknown(field);
  }
  return message;
}

/** Adds the outputs of a record: one per datum. */
function addOutputs(outputs: LossFnOutput[], record: RecordMessage, index: number): void {
  const start = outputs.length;
  const names = Object.keys(record.fields);
  let path = `loss_fn_outputs[${index}]`;
  try {
    const first = record.fields[names[0] ?? ""];
    const count = toSize(record.numDatums) || (first ? readInt64(first.offsets).length - 1 : 0);
    if (!first && count > maxBareDatums) throw new PackedError(`${count} datums without any field`);
    for (let datum = 0; datum < count; datum++) outputs.push({});
    for (const name of names) {
      path = `loss_fn_outputs.${name}`;
      addField(outputs, start, name, record.fields[name]!, count);
    }
  } catch (error) {
    throw fieldError(error, typeName, path);
  }
}

/** Adds the tensors of one field, one per datum. */
function addField(
  outputs: LossFnOutput[],
  start: number,
  name: string,
  batch: BatchedTensorMessage,
  count: number,
): void {
  const size = itemBytes(batch.dtype);
  if (size === undefined) throw new PackedError(`unknown dtype ${String(batch.dtype)}`);
  const offsets = Array.from(readInt64(batch.offsets), Number);
  if (offsets.length !== count + 1) {
    throw new PackedError(`${offsets.length} offsets do not delimit ${count} datums`);
  }
  const trailing = batch.trailingShape.map(toSize);
  let rowSize = 1;
  for (const length of trailing) rowSize *= length;
  const values = readValues(batch.dtype, batch.data);
  for (let index = 0; index < count; index++) {
    const first = offsets[index]! / size;
    const end = offsets[index + 1]! / size;
    if (!Number.isInteger(first) || !Number.isInteger(end) || first < 0 || end < first) {
      throw new PackedError(`offset ${offsets[index]} does not begin a value`);
    }
    if (end > values.length) throw new PackedError(`offset ${offsets[index + 1]} is past the end`);
    const rows = rowSize === 0 ? 0 : (end - first) / rowSize;
    const data = values.subarray(first, end);
    setOwn(outputs[start + index]!, name, new TensorData({ data, shape: [rows, ...trailing] }));
  }
}

function toDenseOutput(output: WireInput<"ForwardBackwardOutput">["lossFnOutputs"][number]) {
  return Object.entries(output)
    .map(([name, value]) => {
      const tensor = (value instanceof TensorData ? value : new TensorData(value)).toDense();
      return { name, tensor, trailing: (tensor.shape ?? []).slice(1) };
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

type DenseOutput = ReturnType<typeof toDenseOutput>;

function* equalLayoutRuns(outputs: readonly DenseOutput[]): Generator<DenseOutput[]> {
  let run: DenseOutput[] = [];
  for (const output of outputs) {
    if (run.length > 0 && !hasLayoutOf(output, run[0]!)) {
      yield run;
      run = [];
    }
    run.push(output);
  }
  if (run.length > 0) yield run;
}

function hasLayoutOf(output: DenseOutput, other: DenseOutput): boolean {
  if (output.length !== other.length) return false;
  return output.every(({ name, tensor, trailing }, index) => {
    const field = other[index]!;
    if (name !== field.name || tensor.dtype !== field.tensor.dtype) return false;
    if (trailing.length !== field.trailing.length) return false;
    return trailing.every((size, dimension) => size === field.trailing[dimension]);
  });
}

function writeRecord(run: readonly DenseOutput[], typeTag: string): MessageWriter {
  const writer = new MessageWriter().string(1, typeTag);
  for (const [field, { name, trailing }] of run[0]!.entries()) {
    const parts: TensorStorage[] = [];
    const lengths = new Int32Array(run.length + 1);
    for (const [index, output] of run.entries()) {
      const { data } = output[field]!.tensor;
      parts.push(data);
      lengths[index + 1] = lengths[index]! + data.length;
    }
    const values = joinValues(parts, lengths[run.length]!);
    const itemSize = values instanceof Float32Array ? 4 : 8;
    const batch = new MessageWriter();
    addValues(batch, 1, values);
    batch.bytes(
      2,
      lengths.map((length) => length * itemSize),
    );
    batch.uint(3, dtypeOf(values)).packedUints(4, trailing);
    writer.message(2, new MessageWriter().string(1, name).message(2, batch));
  }
  return writer.uint(3, run.length);
}

/** One array of all values; stays in 32-bit storage unless one part needs 64 bits. */
function joinValues(parts: readonly TensorStorage[], length: number): TensorStorage {
  if (parts.some((part) => part instanceof BigInt64Array)) {
    return BigInt64Array.from(parts.flatMap((part) => Array.from(part, BigInt)));
  }
  const joined = parts[0] instanceof Int32Array ? new Int32Array(length) : new Float32Array(length);
  let offset = 0;
  for (const part of parts) {
    joined.set(part as Float32Array, offset);
    offset += part.length;
  }
  return joined;
}
