import { allLayerKinds, layerWindows, mixerOf } from "@tinker-ts/hub/weights";
import type { PortData, PortValues, Program } from "../execution/program.js";
import type { CompiledGraph } from "../graph/compile.js";
import type { DimBindings } from "../graph/dim.js";
import { ofWindow } from "../model/cached-attention.js";
import { earlierState, updatedState } from "../model/cached-recurrence.js";
import { statePartsOf } from "../model/mixers/recurrence.js";
import { embedTokens } from "../model/tokens.js";
import type { ModelConfig } from "../model/model-config.js";
import type { WeightFeeds } from "../model/model-weights.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import type { RotaryAngles } from "../model/rotary-tables.js";
import { at, int64From } from "../util/arrays.js";
import type { AdapterSet } from "./adapter-set.js";
import { decoderPart, headPrefix, ofLayer, type DecoderPart } from "./graphs/decoder.js";
import { DeviceLayers } from "../gpu/device-layers.js";
import type { KvMemory } from "./kv-memory.js";
import type { KvRows } from "./kv-rows.js";
import { promptBlock } from "./prefix-cache.js";

/** A row of new tokens to predict the next token for. */
export interface HeadRow {
  readonly row: number;
  /** Divisor of logits; 0 means greedy and leaves them unchanged. */
  readonly temperature: number;
}

/** New tokens of some sequences, the same number of each. */
export interface DecoderInput {
  /** [sequences * newTokens] */
  readonly tokens: Int32Array;
  readonly newTokens: number;
  /** Earlier tokens, to which the new ones are added; row i belongs to sequence i. */
  readonly cache: KvRows;
  readonly adapters: AdapterSet;
  /** The adapter of each sequence. */
  readonly adapterIds: readonly string[];
  /** In the order of their rows. */
  readonly head: readonly HeadRow[];
  /** Tokens of the sequences once all of their parts have been read. @default those read so far */
  readonly wholeTokens?: number;
}

/** Logits and probabilities of some rows of tokens. */
export interface DecoderOutput {
  /** [rows, vocabulary] */
  readonly logits: Float32Array;
  /** [rows, vocabulary], at the rows' temperatures. */
  readonly logprobs: Float32Array;
  /** [rows]; finite if all of a row are. */
  readonly logprobSum: Float32Array;
  /** [rows, vocabulary], at the rows' temperatures. */
  readonly probabilities: Float32Array;
}

/** Logits and probabilities of one row, by token. */
export interface DecodedRow {
  readonly logits: Float32Array;
  readonly logprobs: Float32Array;
  readonly logprobSum: number;
  readonly probabilities: Float32Array;
}

/** One row of an output, without copying it. */
export function decodedRow(output: DecoderOutput, row: number): DecodedRow {
  const { logits, logprobs, logprobSum, probabilities } = output;
  const vocabSize = logits.length / logprobSum.length;
  const [start, end] = [row * vocabSize, (row + 1) * vocabSize];
  return {
    logits: logits.subarray(start, end),
    logprobs: logprobs.subarray(start, end),
    logprobSum: at(logprobSum, row),
    probabilities: probabilities.subarray(start, end),
  };
}

/**
 * Weights that one program may hold. Few large programs are quicker than many: each has threads of its own, which
 * sleep until its turn, and feeds to be handed over. But while a program is made its weights exist twice, in 8 bits three
 * times, and the C library's heap keeps part of their memory.
 */
const defaultProgramBytes = { f32: 64 << 20, int8: 128 << 20 } as const;

/**
 * Largest part of the unembedding that the runtime packs at once; meanwhile it is held twice. Smaller parts
 * cost time: ten of 64 MB take a fifth longer than one.
 */
const defaultMatrixBytes = 256 << 20;

/**
 * A head that is not larger than this part of the layers belongs to their program, which saves a run per
 * token, at the price of a row of logits for prompts that do not need one.
 */
const smallHead = 0.5;

/** Tables of a row of the vocabulary's width that exist at once, with those inside the runtime. */
const tablesPerRow = 6;

/** Most rows that a step evaluates: a block of a prompt and its last row once more. */
const mostHeadRows = promptBlock + 1;

/** Limits that divide a decoder's work. */
export interface DecoderLimits {
  /** Weights that one program may hold. @default 64 MB in 32 bits, 128 MB in 8 */
  readonly programBytes?: number;
  /** Most of the unembedding that is one matrix. @default 256 MB */
  readonly matrixBytes?: number;
  /** Memory for logits and probabilities of rows. @default enough for every row of a step */
  readonly tableBytes?: number;
}

/** Receives the results of some of the requested rows, starting at `first`. */
export type UseOutput = (output: DecoderOutput, first: number) => void;

/** Runs the decoder graphs of a model; programs are made when they are first needed. */
export class Decoder {
  readonly #model: ModelRuntime;
  readonly #parts: readonly DecoderPart[];
  readonly #matrixBytes: number;
  /** Rows that the head takes at once. */
  readonly #headRows: number;
  readonly #deviceLayers: DeviceLayers | undefined;
  readonly #arrays = new Map<string, Float32Array>();
  readonly #knownCaches = new WeakMap<KvRows, { sequences: number; ports: PortValues }>();

  constructor(model: ModelRuntime, limits: DecoderLimits = {}) {
    const { programBytes = usualProgramBytes(model.config), tableBytes = Infinity } = limits;
    this.#model = model;
    this.#matrixBytes = limits.matrixBytes ?? defaultMatrixBytes;
    const { resident } = model;
    this.#deviceLayers = resident && new DeviceLayers(model, resident);
    const fitting = Math.floor(tableBytes / (tablesPerRow * 4 * model.config.vocabSize));
    this.#headRows = Math.max(1, fitting);
    const canJoin = this.#headRows >= mostHeadRows;
    this.#parts = partsOf(model, programBytes, canJoin);
  }

  /**
   * Reads new tokens, adds them to the cache, and gives the results of the requested rows: of all at once, or of
   * as many at a time as there is memory for. Each part is valid until `use` returns.
   */
  async run(input: DecoderInput, use: UseOutput): Promise<void> {
    for (const { part, firstHead } of this.#pieces(input)) {
      await this.#read(part, (output, first) => use(output, firstHead + first));
    }
  }

  /** The new tokens in as many parts as the device needs. */
  *#pieces(input: DecoderInput): Iterable<{ part: DecoderInput; firstHead: number }> {
    const { tokens, newTokens, adapterIds, head } = input;
    const { mostNewTokens } = this.#model.device;
    if (newTokens <= mostNewTokens) {
      yield { part: input, firstHead: 0 };
      return;
    }
    if (adapterIds.length > 1) throw new Error("several new tokens go with a single sequence only");
    let firstHead = 0;
    for (let start = 0; start < newTokens; start += mostNewTokens) {
      const end = Math.min(newTokens, start + mostNewTokens);
      const own = head.filter(({ row }) => row >= start && row < end);
      const rows = own.map(({ row, temperature }) => ({ row: row - start, temperature }));
      const part = { ...input, tokens: tokens.subarray(start, end), newTokens: end - start };
      yield { part: { ...part, head: rows }, firstHead };
      firstHead += own.length;
    }
  }

  /** Memory for caches, if it is not the processor's. */
  get memory(): KvMemory | undefined {
    return this.#deviceLayers?.memory;
  }

  /** Whether all queued operations on device memory are done. */
  get isSettled(): boolean {
    return this.#deviceLayers?.memory.isSettled ?? true;
  }

  /** Runs queued operations on device memory. */
  async settle(): Promise<void> {
    await this.#deviceLayers?.memory.settle();
  }

  /** Frees joined adapters on a device. */
  forget(adapters: AdapterSet): void {
    this.#deviceLayers?.forget(adapters);
  }

  /** The layers and the head on a device. */
  async #readThere(layers: DeviceLayers, input: DecoderInput, use: UseOutput): Promise<void> {
    const { cache, newTokens, adapters, adapterIds, head } = input;
    const prepared = this.#prepare(input);
    const membership = Object.fromEntries(
      Object.entries(adapters.membership(rowIds(input), [])).filter(
        ([name]) => !name.startsWith(headPrefix),
      ),
    );
    const embedded = this.#embed(input.tokens);
    const { rotary, own, sizes } = prepared;
    const read = { embedded, cache, adapters, rotary, own: { ...own, ...membership }, sizes };
    await layers.run(read, async (hidden) => {
      if (head.length === 0) return;
      const { config, programs, resident } = this.#model;
      const part = { first: config.layers, end: config.layers, head: true };
      const program = await programs.get("decoder head", () => decoderPart(config, part));
      const { outer } = (await resident?.weights()) ?? this.#model;
      const factors = await layers.factors(adapters);
      for (let first = 0; first < head.length; first += this.#headRows) {
        const rows = head.slice(first, first + this.#headRows);
        const run = this.#withHead(prepared, input, rows);
        await program.run([{ hidden }, outer, factors, ...run.feeds], run.output, run.sizes);
        use(run.output, first);
      }
    });
    for (let row = 0; row < adapterIds.length; row++) cache.extend(row, newTokens);
  }

  async #read(input: DecoderInput, use: UseOutput): Promise<void> {
    if (this.#deviceLayers !== undefined) return this.#readThere(this.#deviceLayers, input, use);
    // Compiling the largest program takes most memory: it comes first, while little else is in use.
    for (const part of this.#parts.filter(isHeadAlone)) await this.#program(part);
    const { cache, newTokens, adapterIds } = input;
    const sequences = adapterIds.length;
    const prepared = this.#prepare(input);
    const cachePorts = this.#cachePorts(cache, sequences);
    // The operators do not take zero rows.
    const head = input.head.length > 0 ? input.head : [{ row: 0, temperature: 1 }];
    const firstRows = head.slice(0, this.#headRows);
    const { feeds, sizes, output } = this.#withHead(prepared, input, firstRows);
    let hidden = this.#embed(input.tokens);
    for (const [index, part] of this.#parts.entries()) {
      if (isHeadAlone(part)) continue;
      const next = this.#array(`hidden ${index}`, hidden.length);
      const program = await this.#program(part);
      await program.run([...feeds, cachePorts, { hidden }], [cachePorts, output, { next }], sizes);
      if (part.head && input.head.length > 0) use(output, 0);
      hidden = next;
    }
    for (const part of this.#parts.filter(isHeadAlone)) {
      const program = await this.#program(part);
      for (let first = 0; first < input.head.length; first += this.#headRows) {
        const rows = input.head.slice(first, first + this.#headRows);
        const run = this.#withHead(prepared, input, rows);
        await program.run([...run.feeds, { hidden }], run.output, run.sizes);
        use(run.output, first);
      }
    }
    for (let row = 0; row < sequences; row++) cache.extend(row, newTokens);
  }

  /** Feeds and results of a part with a head, for some rows. */
  #withHead(
    prepared: PreparedRun,
    input: DecoderInput,
    head: readonly HeadRow[],
  ): PreparedRun & { readonly output: DecoderOutput & PortValues } {
    const { vocabSize } = this.#model.config;
    const ids = rowIds(input);
    const headIds = head.map(({ row }) => at(ids, row));
    const own = {
      [`${headPrefix}rows`]: int64From(head.map(({ row }) => row)),
      [`${headPrefix}inverseTemperature`]: Float32Array.from(head, inverseTemperature),
    };
    return {
      feeds: [input.adapters.membership(ids, headIds), own, ...prepared.feeds],
      sizes: { ...prepared.sizes, headRows: head.length },
      output: {
        logits: this.#array("logits", head.length * vocabSize),
        logprobs: this.#array("logprobs", head.length * vocabSize),
        logprobSum: this.#array("logprobSum", head.length),
        probabilities: this.#array("probabilities", head.length * vocabSize),
      },
    };
  }

  /** Feeds of all parts, and their sizes. */
  #prepare(input: DecoderInput): PreparedRun & PreparedParts {
    const { newTokens, cache, adapters, adapterIds, wholeTokens } = input;
    const sequences = adapterIds.length;
    const lengths = Array.from(cache.lengths(sequences), (length) => length + newTokens);
    const longest = Math.max(...lengths);
    const rotary = this.#model.rotary(longest);
    const positions = lengths.flatMap((length) =>
      Array.from({ length: newTokens }, (_, token) =>
        rotary.row(length - newTokens + token, wholeTokens ?? length),
      ),
    );
    const own: Record<string, PortData> = { positions: int64From(positions) };
    const capacities: Record<string, number> = {};
    for (const window of new Set(layerWindows(this.#model.config))) {
      const held = lengths.map((length, row) => length - cache.left(window, row));
      own[ofWindow("lastPlaces", window)] = Int32Array.from(held, (count) => count - 1);
      own[ofWindow("longest", window)] = Int32Array.of(Math.max(...held));
      capacities[ofWindow("capacity", window)] = cache.places(window);
    }
    return {
      feeds: [adapters.feeds, rotary.feeds, own],
      rotary,
      own,
      sizes: {
        sequences,
        newTokens,
        ...capacities,
        rank: adapters.rank,
        positions: rotary.rows,
      },
    };
  }

  /** A cache as inputs and outputs of layers: the same arrays, kept as long as the cache. */
  #cachePorts(cache: KvRows, sequences: number): PortValues {
    const known = this.#knownCaches.get(cache);
    if (known?.sequences === sequences) return known.ports;
    const ports: Record<string, Float32Array> = {};
    const { config } = this.#model;
    let [attention, state] = [0, 0];
    for (const [layer, kind] of allLayerKinds(config).entries()) {
      if (mixerOf(kind) !== "attention") {
        for (const part of statePartsOf(config, kind)) {
          const values = cache.state(state++, sequences);
          ports[ofLayer(layer, earlierState(part))] = values;
          ports[ofLayer(layer, updatedState(part))] = values;
        }
        continue;
      }
      const [keys, values] = [cache.keys(attention, sequences), cache.values(attention, sequences)];
      attention += 1;
      if (!(keys instanceof Float32Array) || !(values instanceof Float32Array)) {
        throw new Error("the cache lies on a device");
      }
      ports[ofLayer(layer, "keys")] = keys;
      ports[ofLayer(layer, "values")] = values;
      ports[ofLayer(layer, "extendedKeys")] = keys;
      ports[ofLayer(layer, "extendedValues")] = values;
    }
    this.#knownCaches.set(cache, { sequences, ports });
    return ports;
  }

  async #program(part: DecoderPart): Promise<Program> {
    const { config, outer, layers: held, pool, programs } = this.#model;
    const own = Array.from({ length: part.end - part.first }, (_, index) => part.first + index);
    const compile = async (): Promise<CompiledGraph> => {
      const layers = new Map<number, WeightFeeds>();
      for (const layer of own) layers.set(layer, await held.of(layer));
      // Memory that packing leaves in the C library's heap is then reused for buffers of passes.
      pool.trim(0);
      return decoderPart(config, part, { layers, outer }, this.#matrixBytes);
    };
    // With more threads than heads, ONNX Runtime divides the keys of a lone sequence among threads, and
    // adds them up in another order than beside others.
    const maxThreads = isHeadAlone(part) ? Infinity : config.heads;
    const program = await programs.get(`decoder from ${part.first}`, compile, maxThreads);
    for (const layer of own) held.release(layer);
    return program;
  }

  #embed(tokens: Int32Array): Float32Array {
    const { config, embedding } = this.#model;
    const rows = this.#array("embedded", tokens.length * config.hiddenSize);
    embedTokens(config, embedding, tokens, rows);
    return rows;
  }

  /** A view of an array that is reused by every run. */
  #array(name: string, length: number): Float32Array {
    const existing = this.#arrays.get(name);
    if (existing !== undefined && existing.length >= length) return existing.subarray(0, length);
    const made = new Float32Array(length);
    this.#arrays.set(name, made);
    return made;
  }
}

/**
 * Below this, scaled logits would leave the range of float32. Two logits that differ at all are then further
 * apart than any draw can notice, so a lower temperature would mean the same.
 */
const leastTemperature = 1e-20;

function inverseTemperature({ temperature }: HeadRow): number {
  return temperature === 0 ? 1 : 1 / Math.max(temperature, leastTemperature);
}

/** Feeds of a run, and their sizes. */
interface PreparedRun {
  readonly feeds: readonly PortValues[];
  readonly sizes: DimBindings;
}

/** The feeds that change from run to run, or with its length. */
interface PreparedParts {
  readonly rotary: RotaryAngles;
  readonly own: PortValues;
}

/** The adapter of each row of new tokens. */
function rowIds({ adapterIds, newTokens }: DecoderInput): readonly string[] {
  if (newTokens === 1) return adapterIds;
  return adapterIds.flatMap((id) => Array.from({ length: newTokens }, () => id));
}

function isHeadAlone({ first, end }: DecoderPart): boolean {
  return first === end;
}

/** How many layers go into one program: as few programs as possible, of one size, since the largest takes most memory. */
function layersPerProgram(
  { layers }: ModelConfig,
  layerBytes: number,
  programBytes: number,
): number {
  const fitting = Math.max(1, Math.floor(programBytes / layerBytes));
  return Math.ceil(layers / Math.ceil(layers / fitting));
}

/** Weights of the largest program that a model's layers are divided into. */
export function largestProgramBytes(config: ModelConfig, layerBytes: number): number {
  return layerBytes * layersPerProgram(config, layerBytes, usualProgramBytes(config));
}

function usualProgramBytes({ precision }: ModelConfig): number {
  return defaultProgramBytes[precision?.weights ?? "f32"];
}

/** Divides a model into programs of limited size; the head can be part of the last one or not. */
function partsOf(
  { config, layers: { layerBytes }, outer }: ModelRuntime,
  programBytes: number,
  canJoin: boolean,
): readonly DecoderPart[] {
  const { layers } = config;
  const perProgram = layersPerProgram(config, layerBytes, programBytes);
  const headBytes = outer.head?.byteLength ?? 0;
  const isSmall = canJoin && headBytes <= smallHead * layers * layerBytes;
  const lastFirst = Math.floor((layers - 1) / perProgram) * perProgram;
  const joined = isSmall && (layers - lastFirst) * layerBytes + headBytes <= programBytes;
  const parts: DecoderPart[] = [];
  for (let first = 0; first < layers; first += perProgram) {
    const end = Math.min(layers, first + perProgram);
    parts.push({ first, end, head: joined && end === layers });
  }
  return joined ? parts : [...parts, { first: layers, end: layers, head: true }];
}
