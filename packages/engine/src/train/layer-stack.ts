import type { ModelConfig } from "../files/model-config.js";
import type { DimBindings } from "../graph/dim.js";
import type { ModelWeights } from "../model/model-weights.js";
import type { RotaryAngles } from "../model/rotary-tables.js";
import type { BufferPool } from "../runtime/buffer-pool.js";
import type { PortValues, Program } from "../runtime/program.js";
import { at } from "../util/at.js";
import type { AttentionRun } from "./attention-plan.js";
import { AttentionRunner } from "./attention-runner.js";
import { adaptedSites, gradientName, type Trained } from "./graphs/trained.js";
import type { TrainingPrograms } from "./training-programs.js";

/** What the layers read besides hidden states. */
export interface LayerBatch {
  readonly tokenCount: number;
  readonly positions: BigInt64Array;
  readonly rotary: RotaryAngles;
  readonly attention: readonly AttentionRun[];
}

/** Trained parameters of the layers, and where their gradients are added up. */
export interface LayerParameters {
  readonly rank: number;
  feeds(layer: number): PortValues;
  /** Hands arrays for some gradients of a layer to `work` and adds what it wrote. */
  collect(
    layer: number,
    resultNames: Iterable<string>,
    work: (results: PortValues) => Promise<void>,
  ): Promise<void>;
}

/** One pass over the layers. */
export interface LayerPass {
  readonly batch: LayerBatch;
  readonly parameters: LayerParameters;
  /** Called between programs: lets other work in, and throws when the pass was cancelled. */
  readonly pause: () => Promise<void>;
}

/** How much of the forward pass is kept; what is missing is computed again on the way back. */
export type Keep = "nothing" | "layer inputs" | "everything";

/** Values of a layer by their names in the graphs. */
type Activations = Record<string, Float32Array>;

/** Runs the transformer's layers forwards and backwards on packed tokens, one program at a time. */
export class LayerStack {
  readonly #config: ModelConfig;
  readonly #weights: ModelWeights;
  readonly #trained: Trained;
  readonly #programs: TrainingPrograms;
  readonly #pool: BufferPool;
  readonly #attention: AttentionRunner;

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
    this.#attention = new AttentionRunner(widths, programs, pool);
  }

  /** Hidden states after the last layer, and what was kept. Takes `hidden` over. */
  async forward(
    pass: LayerPass,
    hidden: Float32Array,
    keep: Keep,
  ): Promise<{ hidden: Float32Array; kept: Activations[] }> {
    const kept: Activations[] = [];
    let current = hidden;
    for (let layer = 0; layer < this.#config.layers; layer++) {
      const { next, ...activations } = await this.#layerForward(pass, layer, current);
      current = defined(next);
      if (keep === "everything") {
        kept.push(activations);
      } else if (keep === "layer inputs") {
        const { hidden: input, ...rest } = activations;
        kept.push({ hidden: defined(input) });
        this.#pool.giveBack(...Object.values(rest));
      } else {
        this.#pool.giveBack(...Object.values(activations));
      }
    }
    return { hidden: current, kept };
  }

  /** Adds the gradients of all layers; takes `kept` and `gradient` over. Returns that of the input. */
  async backward(
    pass: LayerPass,
    kept: Activations[],
    gradient: Float32Array,
  ): Promise<Float32Array | undefined> {
    let current: Float32Array | undefined = gradient;
    for (let layer = this.#config.layers - 1; layer >= 0; layer--) {
      const stored = at(kept, layer);
      const activations = "query" in stored ? stored : await this.#recompute(pass, layer, stored);
      current = await this.#layerBackward(pass, layer, activations, defined(current));
    }
    return current;
  }

  /** Gives back what a pass kept and will not use. */
  discard(kept: readonly Activations[]): void {
    for (const activations of kept) this.#pool.giveBack(...Object.values(activations));
  }

  async #recompute(pass: LayerPass, layer: number, stored: Activations): Promise<Activations> {
    const { next, ...rest } = await this.#layerForward(pass, layer, defined(stored.hidden));
    this.#pool.giveBack(defined(next));
    return rest;
  }

  async #layerForward(pass: LayerPass, layer: number, hidden: Float32Array): Promise<Activations> {
    const inputs = await this.#compute(pass, await this.#programs.attentionInputsForward(), {
      ...this.#feeds(pass, layer),
      ...this.#rotary(pass),
      hidden,
    });
    const { query, key, value } = operands(inputs);
    const attended = this.#pool.take(query.length);
    const { attention } = pass.batch;
    await this.#attention.forward(attention, { query, key, value }, attended, pass.pause);
    const outputs = await this.#compute(pass, await this.#programs.layerOutputsForward(), {
      ...this.#feeds(pass, layer),
      hidden,
      attended,
    });
    return { ...inputs, ...outputs, hidden, attended };
  }

  async #layerBackward(
    pass: LayerPass,
    layer: number,
    activations: Activations,
    gradient: Float32Array,
  ): Promise<Float32Array | undefined> {
    const outputs = await this.#differentiate(
      pass,
      layer,
      await this.#programs.layerOutputsBackward(),
      { ...this.#feeds(pass, layer), ...activations, [gradientName("next")]: gradient },
    );
    this.#pool.giveBack(gradient);
    const inputGradient = layer > 0 || this.#trained.kind === "full";
    const { query, key, value } = operands(activations);
    const attended = defined(activations.attended);
    const ofAttended = defined(outputs[gradientName("attended")]);
    const ofResidual = defined(outputs[gradientName("residual")]);
    let ofHidden: Float32Array | undefined;
    if (inputGradient || this.#trainsAttentionInputs()) {
      const gradients = {
        query: this.#pool.take(query.length),
        key: this.#pool.take(key.length),
        value: this.#pool.take(value.length),
      };
      const values = { query, key, value, attended };
      await this.#attention.backward(
        pass.batch.attention,
        values,
        ofAttended,
        gradients,
        pass.pause,
      );
      const inputs = await this.#differentiate(
        pass,
        layer,
        await this.#programs.attentionInputsBackward(inputGradient),
        {
          ...this.#feeds(pass, layer),
          ...this.#rotary(pass),
          ...activations,
          [gradientName("query")]: gradients.query,
          [gradientName("key")]: gradients.key,
          [gradientName("value")]: gradients.value,
          [gradientName("residual")]: ofResidual,
        },
      );
      this.#pool.giveBack(...Object.values(gradients));
      ofHidden = inputs[gradientName("hidden")];
    }
    this.#pool.giveBack(ofAttended, ofResidual, ...Object.values(activations));
    return ofHidden;
  }

  #trainsAttentionInputs(): boolean {
    if (this.#trained.kind === "full") return true;
    return adaptedSites(this.#trained).some((site) => site === "q" || site === "k" || site === "v");
  }

  /** Runs a program with fresh arrays for all its results. */
  async #compute(pass: LayerPass, program: Program, feeds: PortValues): Promise<Activations> {
    await pass.pause();
    const sizes = this.#sizes(pass);
    const results: Activations = {};
    for (const [name, length] of program.resultLengths(sizes))
      results[name] = this.#pool.take(length);
    await program.run(feeds, results, sizes);
    return results;
  }

  /** Runs a backward program: parameter gradients are added up, the others returned. */
  async #differentiate(
    pass: LayerPass,
    layer: number,
    program: Program,
    feeds: PortValues,
  ): Promise<Activations> {
    await pass.pause();
    const sizes = this.#sizes(pass);
    const values: Activations = {};
    const parameterNames: string[] = [];
    for (const [name, length] of program.resultLengths(sizes)) {
      if (activationGradients.has(name)) values[name] = this.#pool.take(length);
      else parameterNames.push(name);
    }
    await pass.parameters.collect(layer, parameterNames, (gradients) =>
      program.run(feeds, { ...values, ...gradients }, sizes),
    );
    return values;
  }

  #feeds(pass: LayerPass, layer: number): PortValues {
    return { ...at(this.#weights.layers, layer), ...pass.parameters.feeds(layer) };
  }

  #rotary({ batch }: LayerPass): PortValues {
    return { positions: batch.positions, cos: batch.rotary.cos, sin: batch.rotary.sin };
  }

  #sizes({ batch, parameters }: LayerPass): DimBindings {
    return {
      tokens: batch.tokenCount,
      positions: batch.rotary.positions,
      rank: parameters.rank,
    };
  }
}

/** Gradients that flow on to earlier programs. */
const activationGradients: ReadonlySet<string> = new Set(
  ["attended", "residual", "hidden"].map((name) => gradientName(name)),
);

function operands(activations: Activations) {
  const { query, key, value } = activations;
  return { query: defined(query), key: defined(key), value: defined(value) };
}

function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a value of the layer is missing");
  return value;
}
