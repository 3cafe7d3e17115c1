import type { ModelRuntime } from "../model/model-runtime.js";
import type { PortData, Program } from "../execution/program.js";
import type { CompiledGraph } from "../graph/compile.js";
import { at } from "../util/at.js";
import { int64From } from "../util/int64.js";
import type { AdapterSet, MembershipFeeds } from "./adapter-set.js";
import { decoderHead, decoderLayers, ofLayer, type LayerRange } from "./graphs/decoder.js";
import type { KvRows } from "./kv-rows.js";

/** New tokens of some sequences, the same number of each. */
export interface DecoderInput {
  /** [sequences * newTokens] */
  readonly tokens: Int32Array;
  readonly sequences: number;
  readonly newTokens: number;
  /** Earlier tokens, to which the new ones are added; row i belongs to sequence i. */
  readonly cache: KvRows;
  readonly adapters: AdapterSet;
  readonly membership: MembershipFeeds;
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

  /** Reads new tokens and adds them to the cache; gives their hidden states, valid until the next run. */
  async run(input: DecoderInput): Promise<Float32Array> {
    const { sequences, newTokens, cache, adapters } = input;
    const positions = this.#positions(input);
    const longest = Math.max(...positions) + 1;
    const rotary = this.#model.rotary(longest);
    const shared = {
      positions: int64From(positions),
      cos: rotary.cos,
      sin: rotary.sin,
      lastPlaces: cache.lengths(sequences).map((length) => length + newTokens - 1),
      longest: Int32Array.of(longest),
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
    let hidden = this.#embed(input.tokens);
    for (const [index, range] of this.#ranges.entries()) {
      const program = await this.#layers(range);
      const feeds: Record<string, PortData> = { ...shared, hidden };
      const next = this.#array(`hidden ${index}`, hidden.length);
      const results: Record<string, PortData> = { next };
      for (let layer = range.first; layer < range.end; layer++) {
        const keys = cache.keys(layer, sequences);
        const values = cache.values(layer, sequences);
        feeds[ofLayer(layer, "keys")] = keys;
        feeds[ofLayer(layer, "values")] = values;
        results[ofLayer(layer, "extendedKeys")] = keys;
        results[ofLayer(layer, "extendedValues")] = values;
      }
      await program.run(feeds, results, sizes);
      hidden = next;
    }
    for (let row = 0; row < sequences; row++) cache.extend(row, newTokens);
    return hidden;
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
    const compile = (): CompiledGraph => decoderLayers(config, weights, range);
    // With more threads than heads, ONNX Runtime divides the keys of a lone sequence among threads, and
    // adds them up in another order than beside others.
    return programs.get(`decoder ${range.first}`, compile, config.heads);
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
