import { type CompiledGraph, completionOutput, type Port } from "../graph/compile.js";
import { Dim, type DimBindings } from "../graph/dim.js";
import { processor, type Device } from "./device.js";
import { DeviceArray } from "./device-array.js";
import { messageOf, NativeCalls, runtimeError } from "./native-calls.js";
import { InferenceSession, Tensor } from "./onnxruntime.js";

/** Where and with how many threads graphs run. */
export interface ProgramOptions {
  readonly threads: number;
  /** Device to compute on. @default the processor */
  readonly device?: Device;
  /** Counter of bytes moved between processor and device. @default nowhere */
  readonly traffic?: Traffic;
  /** Where native calls are announced. @default nowhere */
  readonly nativeCalls?: NativeCalls;
}

/** Data of one port. ONNX indexes with 64 bits; some of ONNX Runtime's own operators count with 32. */
export type PortData = Float32Array | Int8Array | Int32Array | BigInt64Array | DeviceArray;

/** Bytes that programs moved between the processor's memory and a device's. */
export interface Traffic {
  toDeviceBytes: number;
  fromDeviceBytes: number;
}

/** Data by port name. */
export type PortValues = Readonly<Record<string, PortData>>;

/** Data by port name in one or several records: joining large ones for every run would be slow. */
export type PortSources = PortValues | readonly PortValues[];

/**
 * A compiled graph, ready to run.
 *
 * Feeds and results are the caller's arrays: nothing is copied either way. onnxruntime-node computes
 * into the arrays it is given but then copies every result into a new one, in order, and throws at the
 * first that is no tensor. Compiled graphs have such an output in front, so the throw arrives after the
 * work and before the copies; measured on 18 results of 2 MB it is 1.5 ms instead of 13.9 ms. A version
 * that stops throwing would merely be slower, but one with another message would fail: the package
 * depends on one exact version.
 */
export class Program {
  readonly #session: InferenceSession;
  readonly #compiled: Ports;
  readonly #device: Device;
  readonly #nativeCalls: NativeCalls;
  readonly #traffic: Traffic | undefined;
  #last: RunShapes | undefined;

  private constructor(
    session: InferenceSession,
    compiled: Ports,
    device: Device,
    nativeCalls: NativeCalls,
    traffic: Traffic | undefined,
  ) {
    this.#session = session;
    this.#compiled = compiled;
    this.#device = device;
    this.#nativeCalls = nativeCalls;
    this.#traffic = traffic;
  }

  static async create(compiled: CompiledGraph, options: ProgramOptions): Promise<Program> {
    const { device = processor, threads, nativeCalls = new NativeCalls(), traffic } = options;
    const creating = nativeCalls.run(() =>
      InferenceSession.create(compiled.write(device.rules), {
        externalData: compiled.stored.map(({ name, bytes }) => ({ path: name, data: bytes })),
        executionProviders: [device.provider],
        intraOpNumThreads: threads,
        interOpNumThreads: 1,
        // Plans memory per shape; shapes vary here, and the plans would hold memory for each.
        enableMemPattern: false,
        logSeverityLevel: 3,
        extra: {
          session: {
            // Every session has threads of its own: they must not spin while another session works.
            force_spinning_stop: "1",
            // Stored weights get memory of their own size, not the rest of regions twice as large.
            use_device_allocator_for_initializers: "1",
          },
          // The left side is transposed on purpose: see `samplingProjector`.
          optimization: { disable_specified_optimizers: "GemmTransposeFusion" },
        },
      }),
    );
    const session = await creating.catch((error: unknown) => {
      throw runtimeError(error, device);
    });
    // Only shapes and names are needed from here on; stored data may be large.
    const { inputs, outputs, shapeFeeds } = compiled;
    return new Program(session, { inputs, outputs, shapeFeeds }, device, nativeCalls, traffic);
  }

  /** Computes the named results into the given arrays. */
  async run(feeds: PortSources, results: PortSources, sizes: DimBindings): Promise<void> {
    const shapes = this.#shapesFor(sizes);
    const inputs: Record<string, Tensor> = { ...shapes.shapeFeeds };
    for (const shape of shapes.inputs) {
      const data = dataNamed(shape.name, feeds);
      inputs[shape.name] = tensorFor(shape, data);
      if (this.#traffic !== undefined) this.#traffic.toDeviceBytes += movedBytes(data);
    }
    const fetches: Record<string, Tensor | null> = { [completionOutput]: null };
    for (const shape of shapes.outputs) {
      const data = dataNamed(shape.name, results);
      if (data === undefined) continue;
      fetches[shape.name] = tensorFor(shape, data);
      if (this.#traffic !== undefined) this.#traffic.fromDeviceBytes += movedBytes(data);
    }
    try {
      await this.#nativeCalls.run(() => this.#session.run(inputs, fetches));
    } catch (error) {
      if (!isCompletion(error)) throw runtimeError(error, this.#device);
    }
  }

  /** Feeds and results with rows counted by a symbol, such as one per token. */
  rowPorts(symbol: string): ReadonlySet<string> {
    const rows = Dim.symbol(symbol);
    const ports = [...this.#compiled.inputs, ...this.#compiled.outputs];
    return new Set(ports.filter(({ shape }) => shape[0]?.equals(rows)).map(({ name }) => name));
  }

  /** Names and lengths of all results. */
  resultLengths(sizes: DimBindings): ReadonlyMap<string, number> {
    return new Map(this.#shapesFor(sizes).outputs.map(({ name, length }) => [name, length]));
  }

  /** Names and lengths of all feeds. */
  feedLengths(sizes: DimBindings): ReadonlyMap<string, number> {
    return new Map(this.#shapesFor(sizes).inputs.map(({ name, length }) => [name, length]));
  }

  async release(): Promise<void> {
    await this.#session.release();
  }

  /** Shapes are kept for the next run: a decoder runs with the same sizes for many tokens. */
  #shapesFor(sizes: DimBindings): RunShapes {
    const last = this.#last;
    if (last !== undefined && sameSizes(last.sizes, sizes)) return last;
    const { inputs, outputs, shapeFeeds } = this.#compiled;
    this.#last = {
      sizes: { ...sizes },
      inputs: inputs.map((port) => shapeOfPort(port, sizes)),
      outputs: outputs.map((port) => shapeOfPort(port, sizes)),
      shapeFeeds: Object.fromEntries(
        shapeFeeds.map(({ name, value }) => {
          const dims = value.map((dim) => BigInt(dim.evaluate(sizes)));
          return [name, new Tensor("int64", BigInt64Array.from(dims), [dims.length])];
        }),
      ),
    };
    return this.#last;
  }
}

/** The ports and shapes of a compiled graph. */
type Ports = Omit<CompiledGraph, "write" | "stored">;

/** A port with its size in a run. */
interface PortShape {
  readonly name: string;
  readonly dims: readonly number[];
  readonly length: number;
}

/** Ports, feeds and shapes of a run, from its sizes alone. */
interface RunShapes {
  readonly sizes: DimBindings;
  readonly inputs: readonly PortShape[];
  readonly outputs: readonly PortShape[];
  readonly shapeFeeds: Readonly<Record<string, Tensor>>;
}

function shapeOfPort({ name, shape }: Port, sizes: DimBindings): PortShape {
  const dims = shape.map((dim) => dim.evaluate(sizes));
  return { name, dims, length: dims.reduce((product, dim) => product * dim, 1) };
}

function sameSizes(left: DimBindings, right: DimBindings): boolean {
  const names = Object.keys(right);
  return (
    names.length === Object.keys(left).length && names.every((name) => left[name] === right[name])
  );
}

function dataNamed(name: string, sources: PortSources): PortData | undefined {
  if (!isList(sources)) return sources[name];
  for (const source of sources) {
    const data = source[name];
    if (data !== undefined) return data;
  }
  return undefined;
}

function isList(sources: PortSources): sources is readonly PortValues[] {
  return Array.isArray(sources);
}

function tensorFor({ name, dims, length }: PortShape, data: PortData | undefined): Tensor {
  if (data === undefined) throw new Error(`no data for "${name}"`);
  // An array on a device may be longer: what lies there cannot be divided into views.
  const fits = data instanceof DeviceArray ? data.length >= length : data.length === length;
  if (!fits) {
    throw new Error(`"${name}" has ${data.length} elements instead of [${dims.join()}]`);
  }
  if (data instanceof DeviceArray) return data.tensor(dims);
  if (data instanceof Float32Array) return new Tensor("float32", data, dims);
  if (data instanceof Int8Array) return new Tensor("int8", data, dims);
  return data instanceof Int32Array
    ? new Tensor("int32", data, dims)
    : new Tensor("int64", data, dims);
}

function movedBytes(data: PortData | undefined): number {
  return data === undefined || data instanceof DeviceArray ? 0 : data.byteLength;
}

function isCompletion(error: unknown): boolean {
  return messageOf(error).startsWith("Non tensor type");
}

/** Compiles and loads each program when it is first needed, and keeps it. */
export class ProgramCache {
  readonly #options: ProgramOptions;
  readonly #programs = new Map<string, Promise<Program>>();

  constructor(options: ProgramOptions) {
    this.#options = options;
  }

  /** A program by its name, which runs with `maxThreads` threads at most. */
  get(
    key: string,
    compile: () => CompiledGraph | Promise<CompiledGraph>,
    maxThreads = Infinity,
  ): Promise<Program> {
    const existing = this.#programs.get(key);
    if (existing !== undefined) return existing;
    const threads = Math.min(this.#options.threads, maxThreads);
    const made = this.#make(compile, { ...this.#options, threads });
    this.#programs.set(key, made);
    made.catch(() => this.#programs.delete(key));
    return made;
  }

  async #make(
    compile: () => CompiledGraph | Promise<CompiledGraph>,
    options: ProgramOptions,
  ): Promise<Program> {
    return Program.create(await compile(), options);
  }

  async release(): Promise<void> {
    const programs = await Promise.allSettled(this.#programs.values());
    this.#programs.clear();
    for (const result of programs) {
      if (result.status === "fulfilled") await result.value.release();
    }
  }
}
