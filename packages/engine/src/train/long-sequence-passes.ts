import { layerKind } from "../files/layer-kinds.js";
import type { LayerKind, ModelConfig } from "../files/model-config.js";
import type { FedWeights } from "../model/model-weights.js";
import type { BufferPool } from "../execution/buffer-pool.js";
import type { PortValues, Program } from "../execution/program.js";
import { sitesOf } from "../model/sites.js";
import { at } from "../util/at.js";
import type { LongArrangement } from "./arrangement.js";
import { AttentionBlocks } from "./attention-blocks.js";
import { gradientName } from "./graphs/gradients.js";
import { adaptedSites, type Trained } from "./graphs/trained.js";
import { defined, rotaryFeeds, type Activations, type LayerPass } from "./layer-pass.js";
import type { Stretch, StretchPasses } from "./layer-runner.js";
import { compute, computeGradients, type ProgramCall } from "./program-calls.js";
import type { TrainingBudget } from "./training-budget.js";
import type { TrainingPrograms } from "./training-programs.js";

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

  constructor(
    config: ModelConfig,
    weights: FedWeights,
    trained: Trained,
    programs: TrainingPrograms,
    pool: BufferPool,
    { chunkTokens }: Pick<TrainingBudget, "chunkTokens">,
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
  }

  async forward(pass: LayerPass<LongArrangement>, { first: layer }: Stretch, hidden: Float32Array) {
    const kind = layerKind(this.#config, layer);
    const weights = this.#feeds(pass, layer);
    const inputs = await this.#compute(pass, await this.#programs.attentionInputsForward(kind), {
      ...weights,
      ...rotaryFeeds(pass),
      hidden,
    });
    const values = attentionValues(inputs);
    const attended = this.#pool.take(values.query.length);
    await this.#attention.forward(pass.arrangement, kind, values, attended, pass.pause);
    const program = await this.#programs.layerOutputsForward();
    const outputs = await this.#compute(pass, program, { ...weights, hidden, attended });
    return { ...inputs, ...outputs, attended, next: defined(outputs.next) };
  }

  async backward(
    pass: LayerPass<LongArrangement>,
    { first: layer }: Stretch,
    activations: Activations,
    gradient: Float32Array,
  ): Promise<Float32Array | undefined> {
    const kind = layerKind(this.#config, layer);
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
      const ofInputs = await this.#attentionBackward(pass, kind, activations, ofAttended);
      const inputs = await this.#differentiate(
        pass,
        layer,
        await this.#programs.attentionInputsBackward(kind, inputGradient),
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
  ["attended", "residual", "hidden"].map((name) => gradientName(name)),
);

function attentionValues(activations: Activations) {
  const { query, key, value } = activations;
  return { query: defined(query), key: defined(key), value: defined(value) };
}
