import { compileGraph, type CompiledGraph } from "../graph/compile.js";
import { Dim } from "../graph/dim.js";
import { Graph } from "../graph/graph.js";
import { gatherRows, reshape } from "../graph/ops/index.js";
import type { Dtype } from "../graph/tensor.js";
import { int64From } from "../util/arrays.js";
import { roundedBytes } from "../execution/buffer-pool.js";
import { DeviceArray, type DeviceType } from "../execution/device-array.js";
import { NativeCalls, runtimeError } from "../execution/native-calls.js";
import { InferenceSession, Tensor } from "../execution/onnxruntime.js";
import { type PortData, ProgramCache, type ProgramOptions } from "../execution/program.js";
import { processor } from "../execution/device.js";

const elementBytes: Readonly<Record<DeviceType, number>> = { float32: 4, int32: 4, int64: 8 };

/**
 * Arrays in a device's memory, kept between programs.
 *
 * ONNX Runtime gives device memory only as the result of a session, and frees it only on an explicit call.
 * So all of it is allocated here, handed out, returned and reused for arrays
 * of about the same size, and freed in the end.
 */
export class DeviceMemory {
  readonly #options: ProgramOptions;
  readonly #programs: ProgramCache;
  readonly #free = new Map<number, Tensor[]>();
  readonly #taken = new Map<DeviceArray, { tensor: Tensor; bytes: number }>();
  #allocator: Promise<InferenceSession> | undefined;
  #takenBytes = 0;
  #freeBytes = 0;
  #mostTakenBytes = 0;

  constructor(options: ProgramOptions) {
    this.#options = options;
    this.#programs = new ProgramCache(options);
  }

  /** Arrays that have been taken and not returned. */
  get takenArrays(): number {
    return this.#taken.size;
  }

  /** Bytes of the device that are held, in use or not. */
  get heldBytes(): number {
    return this.#takenBytes + this.#freeBytes;
  }

  /** An array with arbitrary contents. */
  async take(length: number, dtype: DeviceType = "float32"): Promise<DeviceArray> {
    const bytes = roundedBytes(length * elementBytes[dtype]);
    const known = this.#free.get(bytes)?.pop();
    if (known !== undefined) this.#freeBytes -= bytes;
    else if (this.heldBytes + bytes > this.#mostTakenBytes) this.trim();
    const tensor = known ?? (await this.#allocate(bytes));
    const array = new DeviceArray(tensor, dtype, length);
    this.#taken.set(array, { tensor, bytes });
    this.#takenBytes += bytes;
    this.#mostTakenBytes = Math.max(this.#mostTakenBytes, this.#takenBytes);
    return array;
  }

  /** Returns arrays; they must not be used any more. */
  giveBack(...arrays: readonly DeviceArray[]): void {
    for (const array of arrays) {
      const taken = this.#taken.get(array);
      if (taken === undefined) throw new Error("an array was given back twice");
      const { tensor, bytes } = taken;
      this.#taken.delete(array);
      this.#takenBytes -= bytes;
      this.#freeBytes += bytes;
      const list = this.#free.get(bytes) ?? [];
      list.push(tensor);
      this.#free.set(bytes, list);
    }
  }

  /** A copy of an array of the processor's. */
  async upload(data: Exclude<PortData, DeviceArray>): Promise<DeviceArray> {
    const dtype = typeOf(data);
    const array = await this.take(data.length, dtype);
    const program = await this.#programs.get(`copy ${dtype}`, () => copyOf(dtype));
    await program.run({ value: data }, { copy: array }, { length: data.length });
    return array;
  }

  /** Brings an array to one of the processor's. */
  async download(array: DeviceArray, target: Float32Array): Promise<void> {
    const program = await this.#programs.get("copy float32", () => copyOf("float32"));
    await program.run({ value: array }, { copy: target }, { length: array.length });
  }

  /** Zeroes an array. */
  async clear(array: DeviceArray): Promise<void> {
    const program = await this.#programs.get("clear", zeros);
    await program.run({}, { zeros: array }, { length: array.length });
  }

  /** `target[to[i]] = source[from[i]]`, by rows of some width; the target may be the source itself. */
  async copyRows(
    source: DeviceArray | Float32Array,
    from: ArrayLike<number>,
    target: DeviceArray,
    to: ArrayLike<number>,
    width: number,
  ): Promise<void> {
    const program = await this.#programs.get("copy rows", copiedRows);
    const feeds = { source, target, from: int64From(from), to: int64From(to) };
    const sizes = { sourceRows: source.length / width, targetRows: target.length / width };
    await program.run(feeds, { result: target }, { ...sizes, width, rows: from.length });
  }

  /** Some rows, brought to an array of the processor's. */
  async downloadRows(
    source: DeviceArray,
    from: ArrayLike<number>,
    target: Float32Array,
    width: number,
  ): Promise<void> {
    const program = await this.#programs.get("pick rows", pickedRows);
    const sizes = { sourceRows: source.length / width, width, rows: from.length };
    await program.run({ source, from: int64From(from) }, { picked: target }, sizes);
  }

  /** Frees unused memory. */
  trim(): void {
    for (const tensors of this.#free.values()) for (const tensor of tensors) tensor.dispose();
    this.#free.clear();
    this.#freeBytes = 0;
  }

  /** Frees everything; arrays must not be used any more. */
  async release(): Promise<void> {
    this.trim();
    for (const { tensor } of this.#taken.values()) tensor.dispose();
    this.#taken.clear();
    this.#takenBytes = 0;
    await this.#programs.release();
    const allocator = await this.#allocator;
    this.#allocator = undefined;
    await allocator?.release();
  }

  async #allocate(bytes: number): Promise<Tensor> {
    const { device = processor, nativeCalls = new NativeCalls() } = this.#options;
    try {
      this.#allocator ??= nativeCalls.run(() =>
        InferenceSession.create(zeros().write(device.rules, { completion: false }), {
          executionProviders: [device.provider],
          preferredOutputLocation: "gpu-buffer",
          logSeverityLevel: 3,
        }),
      );
      const session = await this.#allocator;
      const dims = new Tensor("int64", BigInt64Array.of(BigInt(bytes / 4)), [1]);
      const feeds = Object.fromEntries(session.inputNames.map((name) => [name, dims]));
      const { zeros: made } = await nativeCalls.run(() => session.run(feeds));
      if (made === undefined) throw new Error("the device gave no memory");
      return made;
    } catch (error) {
      throw runtimeError(error, device);
    }
  }
}

function typeOf(data: Exclude<PortData, DeviceArray>): DeviceType {
  if (data instanceof Float32Array) return "float32";
  if (data instanceof Int8Array) throw new TypeError("weights in 8 bits stay with the processor");
  return data instanceof Int32Array ? "int32" : "int64";
}

function copyOf(dtype: Dtype): CompiledGraph {
  const graph = new Graph();
  const copy = graph.input("value", [Dim.symbol("length")], dtype);
  return compileGraph(graph, { outputs: { copy } });
}

function zeros(): CompiledGraph {
  const graph = new Graph();
  const shape = [Dim.symbol("length")];
  const zero = reshape(graph.scalar(0), [1]);
  const inputs = [zero, graph.shapeValue(shape)];
  return compileGraph(graph, {
    outputs: { zeros: graph.applyOne({ type: "Expand", inputs, shape }) },
  });
}

function copiedRows(): CompiledGraph {
  const graph = new Graph();
  const [width, rows] = [Dim.symbol("width"), Dim.symbol("rows")];
  const source = graph.input("source", [Dim.symbol("sourceRows"), width]);
  const target = graph.input("target", [Dim.symbol("targetRows"), width]);
  const picked = gatherRows(source, graph.input("from", [rows], "int64"));
  const places = reshape(graph.input("to", [rows], "int64"), [rows, 1]);
  const result = graph.applyOne({
    type: "ScatterND",
    inputs: [target, places, picked],
    shape: target.shape,
  });
  return compileGraph(graph, { outputs: { result } });
}

function pickedRows(): CompiledGraph {
  const graph = new Graph();
  const source = graph.input("source", [Dim.symbol("sourceRows"), Dim.symbol("width")]);
  const from = graph.input("from", [Dim.symbol("rows")], "int64");
  return compileGraph(graph, { outputs: { picked: gatherRows(source, from) } });
}
