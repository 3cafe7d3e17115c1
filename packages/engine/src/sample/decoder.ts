import type { ModelRuntime } from "../model/model-runtime.js";
import type { Program } from "../execution/program.js";
import { at } from "../util/at.js";
import { int64From } from "../util/int64.js";
import type { AdapterSet, MembershipFeeds } from "./adapter-set.js";
import { decoderHead, decoderLayers, ofLayer, type LayerRange } from "./graphs/decoder.js";
import type { KvRows, NewKeyValues } from "./kv-rows.js";

/** New tokens of some sequences, the same number of each. */
export interface DecoderInput {
  /** [sequences * newTokens] */
  readonly tokens: Int32Array;
  readonly sequences: number;
  readonly newTokens: number;
  /** Earlier tokens; row i belongs to sequence i. */
  readonly cache: KvRows;
  readonly adapters: AdapterSet;
  readonly membership: MembershipFeeds;
}

/** Hidden states of the new tokens, and their keys and values; valid until the next run. */
export interface DecoderOutput {
  readonly hidden: Float32Array;
  readonly fresh: NewKeyValues;
}

/** What the head says of some rows; valid until the next run. */
export interface HeadOutput {
  /** [rows, vocabulary] */
  readonly logits: Float32Array;
  /** [rows, vocabulary], at the rows' temperatures. */
  readonly probabilities: Float32Array;
  /** [rows] */
  readonly logSumExp: Float32Array;
}

/** Weights that one program may hold: models are serialized with them, and messages end at 2 GB. */
const programBytes = 512 << 20;

/** Runs the decoder graphs of a model; programs are made when they are first needed. */
export class Decoder {
  readonly #model: ModelRuntime;
  readonly #ranges: readonly LayerRange[];
  readonly #arrays = new Map<string, Float32Array>();

  constructor(model: ModelRuntime) {
    this.#model = model;
    this.#ranges = layerRanges(model);
  }

  async run(input: DecoderInput): Promise<DecoderOutput> {
    const { config } = this.#model;
    const { sequences, newTokens, cache, adapters } = input;
    const positions = this.#positions(input);
    const longest = Math.max(...positions) + 1;
    const rotary = this.#model.rotary(longest);
    const shared = {
      positions: int64From(positions),
      cos: rotary.cos,
      sin: rotary.sin,
      cachedMask: cache.mask(sequences),
      freshMask: freshMask(newTokens),
      ...input.membership,
      ...adapters.layerFeeds,
    };
    const sizes = {
      sequences,
      newTokens,
      capacity: cache.capacity,
      rank: adapters.rank,
      positions: rotary.positions,
    };
    const fresh = { keys: [] as Float32Array[], values: [] as Float32Array[] };
    let hidden = this.#embed(input.tokens);
    for (const [index, range] of this.#ranges.entries()) {
      const program = await this.#layers(range);
      const feeds: Record<string, Float32Array | BigInt64Array> = { ...shared, hidden };
      const next = this.#array(`hidden ${index}`, hidden.length);
      const results: Record<string, Float32Array> = { next };
      for (let layer = range.first; layer < range.end; layer++) {
        feeds[ofLayer(layer, "cachedKey")] = cache.keys(layer, sequences);
        feeds[ofLayer(layer, "cachedValue")] = cache.values(layer, sequences);
        const length = input.tokens.length * config.kvHeads * config.headDim;
        const [key, value] = [
          this.#array(`key ${layer}`, length),
          this.#array(`value ${layer}`, length),
        ];
        results[ofLayer(layer, "newKey")] = key;
        results[ofLayer(layer, "newValue")] = value;
        fresh.keys.push(key);
        fresh.values.push(value);
      }
      await program.run(feeds, results, sizes);
      hidden = next;
    }
    return { hidden, fresh };
  }

  /** Logits and probabilities of rows of hidden states, `newTokens` of each of `sequences`. */
  async head(
    hidden: Float32Array,
    rows: { readonly sequences: number; readonly newTokens: number },
    temperatures: readonly number[],
    adapters: AdapterSet,
    membership: MembershipFeeds,
  ): Promise<HeadOutput> {
    const { config, weights } = this.#model;
    const program = await this.#model.programs.get("decoderHead", () =>
      decoderHead(config, weights),
    );
    const count = rows.sequences * rows.newTokens;
    const output = {
      logits: this.#array("logits", count * config.vocabSize),
      probabilities: this.#array("probabilities", count * config.vocabSize),
      logSumExp: this.#array("logSumExp", count),
    };
    const feeds = {
      hidden,
      ...membership,
      inverseTemperature: Float32Array.from(temperatures, (t) => (t === 0 ? 1 : 1 / t)),
      ...adapters.headFeeds,
    };
    await program.run(feeds, output, { ...rows, rank: adapters.rank });
    return output;
  }

  #layers(range: LayerRange): Promise<Program> {
    const { config, weights, programs } = this.#model;
    return programs.get(`decoder ${range.first}`, () => decoderLayers(config, weights, range));
  }

  #positions({ sequences, newTokens, cache }: DecoderInput): Int32Array {
    const positions = new Int32Array(sequences * newTokens);
    for (let sequence = 0; sequence < sequences; sequence++) {
      for (let token = 0; token < newTokens; token++) {
        positions[sequence * newTokens + token] = cache.length(sequence) + token;
      }
    }
    return positions;
  }

  #embed(tokens: Int32Array): Float32Array {
    const width = this.#model.config.hiddenSize;
    const rows = this.#array("embedded", tokens.length * width);
    for (const [index, token] of tokens.entries()) {
      const { embedding } = this.#model.weights;
      rows.set(embedding.subarray(token * width, (token + 1) * width), index * width);
    }
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

function layerRanges({ config, weights }: ModelRuntime): readonly LayerRange[] {
  const bytes = Object.values(at(weights.layers, 0)).reduce(
    (sum, { byteLength }) => sum + byteLength,
    0,
  );
  const perProgram = Math.max(1, Math.floor(programBytes / bytes));
  const ranges: LayerRange[] = [];
  for (let first = 0; first < config.layers; first += perProgram) {
    ranges.push({ first, end: Math.min(config.layers, first + perProgram) });
  }
  return ranges;
}

function freshMask(newTokens: number): Float32Array {
  const mask = new Float32Array(newTokens * newTokens);
  for (let query = 0; query < newTokens; query++) {
    mask.fill(-1e30, query * newTokens + query + 1, (query + 1) * newTokens);
  }
  return mask;
}
