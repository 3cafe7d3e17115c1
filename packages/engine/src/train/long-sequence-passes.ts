import { layerKind, mixerOf, type LayerKind } from "@tinker-ts/hub/weights";
import type { ModelConfig } from "../model/model-config.js";
import type { FedWeights } from "../model/model-weights.js";
import type { BufferPool } from "../execution/buffer-pool.js";
import type { PortValues, Program } from "../execution/program.js";
import { sitesOf } from "../model/sites.js";
import { at } from "../util/arrays.js";
import type { LongArrangement } from "./micro-batch.js";
import { AttentionBlocks } from "./attention-blocks.js";
import { adaptedSites, gradientName, type Trained } from "./graphs/trained.js";
import { inSegment } from "./graphs/segment.js";
import {
  type Activations,
  defined,
  type LayerPass,
  rotaryFeeds,
  type Stretch,
  type StretchPasses,
} from "./layer-runner.js";
import {
  compute,
  computeGradients,
  type ProgramCall,
  type TrainingPrograms,
} from "./training-programs.js";
import { RecurrentBlocks, type RecurrentLayer } from "./recurrent-blocks.js";
import type { TrainingBudget } from "./training-budget.js";

/** Passes one long sequence through the layers: each in two parts, with attention in blocks between. */
export class LongSequencePasses implements StretchPasses<LongArrangement, Float32Array> {
  readonly stretches: readonly Stretch[];
  readonly #config: ModelConfig;
  readonly #weights: FedWeights;
  readonly #trained: Trained;
  readonly #programs: TrainingPrograms;
  readonly #pool: BufferPool;
  readonly #chunkTokens: number;
  readonly #attention: AttentionBlocks;
  readonly #recurrent: RecurrentBlocks;

  constructor(
    config: ModelConfig,
    weights: FedWeights,
    trained: Trained,
    programs: TrainingPrograms,
    pool: BufferPool,
    { chunkTokens, stateBlockTokens }: Pick<TrainingBudget, "chunkTokens" | "stateBlockTokens">,
  ) {
    this.stretches = Array.from({ length: config.layers }, (_, first) => ({ first, layers: 1 }));
    this.#config = config;
    this.#weights = weights;
    this.#trained = trained;
    this.#programs = programs;
    this.#pool = pool;
    this.#chunkTokens = chunkTokens;
    const widths = { query: config.heads * config.headDim, key: config.kvHeads * config.headDim };
    this.#attention = new AttentionBlocks(widths, programs, pool);
    this.#recurrent = new RecurrentBlocks(config.hiddenSize, stateBlockTokens, programs, pool);
  }

  async forward(pass: LayerPass<LongArrangement>, { first: layer }: Stretch, hidden: Float32Array) {
    const kind = layerKind(this.#config, layer);
    if (mixerOf(kind) !== "attention") {
      return this.#recurrent.forward(pass, this.#recurrentLayer(pass, layer), hidden);
    }
    const weights = this.#feeds(pass, layer);
    const inputs = await this.#compute(pass, await this.#programs.attentionInputsForward(kind), {
      ...weights,
      ...rotaryFeeds(pass),
      hidden,
    });
    const values = attentionValues(inputs);
    const attended = this.#pool.take(values.query.length);
    await this.#attention.forward(pass.arrangement, kind, values, attended, pass.pause);
    const program = await this.#programs.layerOutputsForward(kind);
    const outputs = await this.#compute(pass, program, {
      ...weights,
      ...gateOf(inputs),
      hidden,
      attended,
    });
    return { ...inputs, ...outputs, attended, next: defined(outputs.next) };
  }

  async backward(
    pass: LayerPass<LongArrangement>,
    { first: layer }: Stretch,
    activations: Activations,
    gradient: Float32Array,
  ): Promise<Float32Array | undefined> {
    const kind = layerKind(this.#config, layer);
    if (mixerOf(kind) !== "attention") {
      const own = this.#recurrentLayer(pass, layer);
      return this.#recurrent.backward(pass, own, activations, gradient);
    }
    const feeds = { ...this.#feeds(pass, layer), ...rotaryFeeds(pass), ...activations };
    const outputs = await this.#differentiate(
      pass,
      layer,
      await this.#programs.layerOutputsBackward(kind),
      { ...feeds, [gradientName("next")]: gradient },
    );
    const ofAttended = defined(outputs[gradientName("attended")]);
    const ofResidual = defined(outputs[gradientName("residual")]);
    const ofGate = outputs[gradientName("queryGate")];
    const inputGradient = layer > 0 || this.#trained.kind === "full";
    let ofHidden: Float32Array | undefined;
    if (inputGradient || this.#trainsAttentionInputs()) {
      const ofInputs = await this.#attentionBackward(pass, kind, activations, ofAttended);
      const inputs = await this.#differentiate(
        pass,
        layer,
        await this.#programs.attentionInputsBackward(kind, inputGradient),
        {
          ...feeds,
          ...ofInputs,
          ...(ofGate === undefined ? {} : { [gradientName("queryGate")]: ofGate }),
          [gradientName("residual")]: ofResidual,
        },
      );
      ofHidden = inputs[gradientName("hidden")];
      this.#pool.giveBack(...Object.values(ofInputs));
    }
    this.#pool.giveBack(ofAttended, ofResidual, ...(ofGate === undefined ? [] : [ofGate]));
    return ofHidden;
  }

  async #attentionBackward(
    pass: LayerPass<LongArrangement>,
    kind: LayerKind,
    activations: Activations,
    ofAttended: Float32Array,
  ): Promise<Activations> {
    const values = { ...attentionValues(activations), attended: defined(activations.attended) };
    const gradients = {
      query: this.#pool.take(values.query.length),
      key: this.#pool.take(values.key.length),
      value: this.#pool.take(values.value.length),
    };
    const { arrangement, pause } = pass;
    await this.#attention.backward(arrangement, kind, values, ofAttended, gradients, pause);
    return {
      [gradientName("query")]: gradients.query,
      [gradientName("key")]: gradients.key,
      [gradientName("value")]: gradients.value,
    };
  }

  #recurrentLayer(pass: LayerPass<LongArrangement>, layer: number): RecurrentLayer {
    const { parameters } = pass;
    const own = { ...at(this.#weights.layers, layer), ...parameters.feeds(layer) };
    const named = Object.entries(own).map(([name, data]) => [inSegment(0, name), data] as const);
    const kind = layerKind(this.#config, layer);
    const inputGradient = layer > 0 || this.#trained.kind === "full";
    return {
      layer,
      kind,
      inputGradient,
      feeds: { ...parameters.shared, ...Object.fromEntries(named) },
    };
  }

  #trainsAttentionInputs(): boolean {
    if (this.#trained.kind === "full") return true;
    const inputs = sitesOf(this.#config, "qkv");
    return adaptedSites(this.#trained).some((site) => inputs.includes(site));
  }

  #compute(
    pass: LayerPass<LongArrangement>,
    program: Program,
    feeds: PortValues,
  ): Promise<Activations> {
    return compute(this.#pool, this.#call(pass, program, feeds));
  }

  #differentiate(
    pass: LayerPass<LongArrangement>,
    layer: number,
    program: Program,
    feeds: PortValues,
  ): Promise<Activations> {
    const call = this.#call(pass, program, feeds);
    return computeGradients(this.#pool, call, pass.parameters, (result) =>
      activationGradients.has(result)
        ? undefined
        : { result, place: layer, feed: result.slice(gradientName("").length) },
    );
  }

  #feeds(pass: LayerPass<LongArrangement>, layer: number): PortValues {
    const { parameters } = pass;
    return {
      ...at(this.#weights.layers, layer),
      ...parameters.shared,
      ...parameters.feeds(layer),
    };
  }

  #call(pass: LayerPass<LongArrangement>, program: Program, feeds: PortValues): ProgramCall {
    const sizes = {
      tokens: pass.tokenCount,
      positions: pass.tableRows,
      rank: pass.parameters.rank,
    };
    return { program, feeds, sizes, chunkTokens: this.#chunkTokens, pause: pass.pause };
  }
}

/** Gradients that flow on to earlier programs. */
const activationGradients: ReadonlySet<string> = new Set(
  ["attended", "queryGate", "residual", "hidden"].map((name) => gradientName(name)),
);

function gateOf({ queryGate }: Activations): Activations {
  return queryGate === undefined ? {} : { queryGate };
}

function attentionValues(activations: Activations) {
  const { query, key, value } = activations;
  return { query: defined(query), key: defined(key), value: defined(value) };
}
