import type { ModelConfig } from "../files/model-config.js";
import type { DimBindings } from "../graph/dim.js";
import type { ModelWeights } from "../model/model-weights.js";
import type { BufferPool } from "../execution/buffer-pool.js";
import type { PortValues, Program } from "../execution/program.js";
import { at } from "../util/at.js";
import type { LongArrangement } from "./arrangement.js";
import { AttentionBlocks } from "./attention-blocks.js";
import { adaptedSites, gradientName, type Trained } from "./graphs/trained.js";
import {
  defined,
  rotaryFeeds,
  type Activations,
  type ForwardResult,
  type Keep,
  type LayerPass,
  type LayerRunner,
} from "./layer-pass.js";
import { compute, computeGradients } from "./program-calls.js";
import type { TrainingPrograms } from "./training-programs.js";

/** Runs one long sequence through the layers: each layer in two parts, with attention in blocks between. */
export class LongSequenceRunner implements LayerRunner<LongArrangement> {
  readonly #config: ModelConfig;
  readonly #weights: ModelWeights;
  readonly #trained: Trained;
  readonly #programs: TrainingPrograms;
  readonly #pool: BufferPool;
  readonly #attention: AttentionBlocks;

  constructor(
    config: ModelConfig,
    weights: ModelWeights,
    trained: Trained,
    programs: TrainingPrograms,
    pool: BufferPool,
  ) {
    this.#config = config;
    this.#weights = weights;
    this.#trained = trained;
    this.#programs = programs;
    this.#pool = pool;
    const widths = { query: config.heads * config.headDim, key: config.kvHeads * config.headDim };
    this.#attention = new AttentionBlocks(widths, programs, pool);
  }

  async forward(
    pass: LayerPass<LongArrangement>,
    hidden: Float32Array,
    keep: Keep,
  ): Promise<ForwardResult> {
    const kept: Activations[] = [];
    let current = hidden;
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const { next, ...activations } = await this.#layerForward(pass, layer, current);
      pass.advance(1);
      const input = current;
      current = defined(next);
      if (keep === "everything") {
        kept.push({ ...activations, hidden: input });
        continue;
      }
      this.#pool.giveBack(...Object.values(activations));
      if (keep === "inputs") kept.push({ hidden: input });
      else this.#pool.giveBack(input);
    }
    return { hidden: current, kept };
  }

  async backward(
    pass: LayerPass<LongArrangement>,
    kept: readonly Activations[],
    gradient: Float32Array,
  ): Promise<Float32Array | undefined> {
    let current: Float32Array | undefined = gradient;
    for (let layer = this.#config.layers - 1; layer >= 0; layer--) {
      const activations = await this.#complete(pass, layer, at(kept, layer));
      const ofNext = defined(current);
      current = await this.#layerBackward(pass, layer, activations, ofNext);
      pass.advance(1);
      this.#pool.giveBack(ofNext, ...Object.values(activations));
    }
    return current;
  }

  /** Computes what was not kept. */
  async #complete(
    pass: LayerPass<LongArrangement>,
    layer: number,
    kept: Activations,
  ): Promise<Activations> {
    if (Object.keys(kept).length > 1) return kept;
    const hidden = defined(kept.hidden);
    const { next, ...activations } = await this.#layerForward(pass, layer, hidden);
    this.#pool.giveBack(defined(next));
    return { ...activations, hidden };
  }

  async #layerForward(
    pass: LayerPass<LongArrangement>,
    layer: number,
    hidden: Float32Array,
  ): Promise<Activations> {
    const weights = this.#feeds(pass, layer);
    const inputs = await this.#compute(pass, await this.#programs.attentionInputsForward(), {
      ...weights,
      ...rotaryFeeds(pass),
      hidden,
    });
    const values = attentionValues(inputs);
    const attended = this.#pool.take(values.query.length);
    await this.#attention.forward(pass.arrangement.blocks, values, attended, pass.pause);
    const program = await this.#programs.layerOutputsForward();
    const outputs = await this.#compute(pass, program, { ...weights, hidden, attended });
    return { ...inputs, ...outputs, attended };
  }

  async #layerBackward(
    pass: LayerPass<LongArrangement>,
    layer: number,
    activations: Activations,
    gradient: Float32Array,
  ): Promise<Float32Array | undefined> {
    const feeds = { ...this.#feeds(pass, layer), ...rotaryFeeds(pass), ...activations };
    const outputs = await this.#differentiate(
      pass,
      layer,
      await this.#programs.layerOutputsBackward(),
      { ...feeds, [gradientName("next")]: gradient },
    );
    const ofAttended = defined(outputs[gradientName("attended")]);
    const ofResidual = defined(outputs[gradientName("residual")]);
    const inputGradient = layer > 0 || this.#trained.kind === "full";
    let ofHidden: Float32Array | undefined;
    if (inputGradient || this.#trainsAttentionInputs()) {
      const ofInputs = await this.#attentionBackward(pass, activations, ofAttended);
      const inputs = await this.#differentiate(
        pass,
        layer,
        await this.#programs.attentionInputsBackward(inputGradient),
        { ...feeds, ...ofInputs, [gradientName("residual")]: ofResidual },
      );
      ofHidden = inputs[gradientName("hidden")];
      this.#pool.giveBack(...Object.values(ofInputs));
    }
    this.#pool.giveBack(ofAttended, ofResidual);
    return ofHidden;
  }

  async #attentionBackward(
    pass: LayerPass<LongArrangement>,
    activations: Activations,
    ofAttended: Float32Array,
  ): Promise<Activations> {
    const values = { ...attentionValues(activations), attended: defined(activations.attended) };
    const gradients = {
      query: this.#pool.take(values.query.length),
      key: this.#pool.take(values.key.length),
      value: this.#pool.take(values.value.length),
    };
    const { blocks } = pass.arrangement;
    await this.#attention.backward(blocks, values, ofAttended, gradients, pass.pause);
    return {
      [gradientName("query")]: gradients.query,
      [gradientName("key")]: gradients.key,
      [gradientName("value")]: gradients.value,
    };
  }

  #trainsAttentionInputs(): boolean {
    if (this.#trained.kind === "full") return true;
    return adaptedSites(this.#trained).some((site) => site === "q" || site === "k" || site === "v");
  }

  async #compute(
    pass: LayerPass<LongArrangement>,
    program: Program,
    feeds: PortValues,
  ): Promise<Activations> {
    await pass.pause();
    return compute(this.#pool, program, feeds, this.#sizes(pass));
  }

  async #differentiate(
    pass: LayerPass<LongArrangement>,
    layer: number,
    program: Program,
    feeds: PortValues,
  ): Promise<Activations> {
    await pass.pause();
    const { parameters } = pass;
    return computeGradients(this.#pool, program, feeds, this.#sizes(pass), parameters, (result) =>
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

  #sizes(pass: LayerPass<LongArrangement>): DimBindings {
    return {
      tokens: pass.tokenCount,
      positions: pass.rotary.positions,
      rank: pass.parameters.rank,
    };
  }
}

/** Gradients that flow on to earlier programs. */
const activationGradients: ReadonlySet<string> = new Set(
  ["attended", "residual", "hidden"].map((name) => gradientName(name)),
);

function attentionValues(activations: Activations) {
  const { query, key, value } = activations;
  return { query: defined(query), key: defined(key), value: defined(value) };
}
