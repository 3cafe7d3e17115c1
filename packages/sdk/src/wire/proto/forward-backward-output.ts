import { setOwn } from "../../schema/set-own.js";
import { TensorData, type TensorStorage } from "../../types/tensor-data.js";
import type { ForwardBackwardOutput, LossFnOutput } from "../../types/training.js";
import type { WireInput } from "../wire-types.js";
import { MessageWriter } from "./message-writer.js";
import { PackedError, readInt64 } from "./packed.js";
import { addValues, atField, dtypeOf, itemBytes, readValues, toSize } from "./tensor-codec.js";
import {
  readForwardBackwardOutput,
  type ArrayRecordMessage,
  type BatchedTensorMessage,
} from "./messages.js";

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
  const message = readForwardBackwardOutput(bytes);
  const fullType = message.lossFnOutputType;
  const hasRecords = message.lossFnOutputs.length > 0;
  return {
    lossFnOutputType: hasRecords
      ? fullType.slice(fullType.lastIndexOf(":") + 1)
      : fullType || "ArrayRecord",
    lossFnOutputs: message.lossFnOutputs.flatMap((record, index) =>
      atField(typeName, `loss_fn_outputs[${index}]`, () => readRecord(record)),
    ),
    metrics: message.metrics,
  };
}

function readRecord(record: ArrayRecordMessage): LossFnOutput[] {
  const fields = Object.entries(record.fields);
  const [, first] = fields[0] ?? [];
  const count = toSize(record.numDatums) || (first ? offsetsOf(first).length - 1 : 0);
  if (fields.length === 0 && count > maxBareDatums) {
    throw new PackedError(`${count} datums without any field`);
  }
  const outputs: LossFnOutput[] = Array.from({ length: fields.length ? 0 : count }, () => ({}));
  for (const [name, batch] of fields) {
    atField(typeName, `loss_fn_outputs.${name}`, () =>
      splitBatch(batch, count).forEach((tensor, index) => {
        setOwn((outputs[index] ??= {}), name, tensor);
      }),
    );
  }
  return outputs;
}

/** The tensors of one field, one per datum. */
function splitBatch(batch: BatchedTensorMessage, count: number): TensorData[] {
  const size = itemBytes(batch.dtype);
  if (size === undefined) throw new PackedError(`unknown dtype ${String(batch.dtype)}`);
  const offsets = offsetsOf(batch);
  if (offsets.length !== count + 1) {
    throw new PackedError(`${offsets.length} offsets do not delimit ${count} datums`);
  }
  const trailing = batch.trailingShape.map(toSize);
  const rowSize = trailing.reduce((product, length) => product * length, 1);
  const values = readValues(batch.dtype, batch.data);
  const tensors: TensorData[] = [];
  for (let index = 0; index < count; index++) {
    const start = offsets[index]! / size;
    const end = offsets[index + 1]! / size;
    if (!Number.isInteger(start) || !Number.isInteger(end) || start < 0 || end < start) {
      throw new PackedError(`offset ${offsets[index]} does not begin a value`);
    }
    if (end > values.length) throw new PackedError(`offset ${offsets[index + 1]} is past the end`);
    const rows = rowSize === 0 ? 0 : (end - start) / rowSize;
    tensors.push(new TensorData({ data: values.subarray(start, end), shape: [rows, ...trailing] }));
  }
  return tensors;
}

function offsetsOf(batch: BatchedTensorMessage): readonly number[] {
  return Array.from(readInt64(batch.offsets), Number);
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
  const [first = []] = run;
  first.forEach(({ name, trailing }, field) => {
    const values = joinValues(run.map((output) => output[field]!.tensor.data));
    const itemSize = values instanceof Float32Array ? 4 : 8;
    const offsets = new Int32Array(run.length + 1);
    run.forEach((output, index) => {
      offsets[index + 1] = offsets[index]! + output[field]!.tensor.data.length * itemSize;
    });
    const batch = new MessageWriter();
    addValues(batch, 1, values);
    batch.int64Bytes(2, offsets).uint(3, dtypeOf(values)).packedUints(4, trailing);
    writer.message(2, new MessageWriter().string(1, name).message(2, batch));
  });
  return writer.uint(3, run.length);
}

/** One array of all values; stays in 32-bit storage unless one part needs 64 bits. */
function joinValues(parts: readonly TensorStorage[]): TensorStorage {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
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
