import type { ValueMemory, Values } from "../execution/device-array.js";
import { at } from "../util/arrays.js";
import type { PortData, PortValues, Program } from "../execution/program.js";
import type { LongArrangement, ShortArrangement } from "./micro-batch.js";
import type { GradientTarget } from "./gradient-sum.js";
import { layerKind } from "@tinker-ts/hub/weights";
import type { ModelConfig } from "../model/model-config.js";
import type { FedWeights } from "../model/model-weights.js";
import type { KeptKind } from "../graph/kept-values.js";
import { inSegment } from "./graphs/segment.js";
import { gradientName, type Trained } from "./graphs/trained.js";
import {
  compute,
  computeGradients,
  type ProgramCall,
  type SegmentShape,
  type TrainingPrograms,
} from "./training-programs.js";
import type { TrainingBudget } from "./training-budget.js";

/** Trained parameters of the layers, and where their gradients are added up. */
export interface LayerParameters {
  readonly rank: number;
  /** Feeds that belong to no layer. */
  readonly shared: PortValues;
  feeds(layer: number): PortValues;
  /** Hands arrays for some gradients to `work` and adds what it wrote. */
  collect(
    targets: readonly GradientTarget[],
    work: (results: Record<string, Float32Array>) => Promise<void>,
  ): Promise<void>;
}

/** One pass of packed tokens over the layers. */
export interface LayerPass<A = ShortArrangement | LongArrangement> {
  readonly tokenCount: number;
  /** Where the angles of each token stand in the tables. */
  readonly positions: PortData;
  /** Angles of all rotations. */
  readonly tables: PortValues;
  readonly tableRows: number;
  readonly arrangement: A;
  readonly parameters: LayerParameters;
  /** Called between programs: lets other work run, and throws when the pass was cancelled. */
  readonly pause: () => Promise<void>;
  /** Called when some layers have been passed, in either direction. */
  readonly advance: (layers: number) => void;
}

/** How much of the forward pass is kept; the rest is recomputed on the way back. */
export type Keep = "nothing" | "inputs" | "everything";

/** Values by their names in the graphs. */
export type Activations<V extends Values = Float32Array> = Record<string, V>;

/** Hidden states after the last layer, and the values kept for each stretch. */
export interface ForwardResult<V extends Values> {
  readonly hidden: V;
  readonly kept: readonly Activations<V>[];
}

/** The positions of a pass's tokens and their angles, as feeds. */
export function rotaryFeeds({ positions, tables }: LayerPass<unknown>): PortValues {
  return { positions, ...tables };
}

/** A value that the graphs always give. */
export function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a value of the layer is missing");
  return value;
}

/** Consecutive layers that are passed at once. */
export interface Stretch {
  readonly first: number;
  readonly layers: number;
}

/** How stretches of layers are passed. */
export interface StretchPasses<A, V extends Values> {
  readonly stretches: readonly Stretch[];
  /** The hidden states after a stretch and, if requested, the values that `backward` reads. */
  forward(
    pass: LayerPass<A>,
    stretch: Stretch,
    hidden: V,
    withActivations: boolean,
  ): Promise<Activations<V> & { readonly next: V }>;
  /** Adds the gradients of a stretch and returns that of its input, if it has to flow on. */
  backward(
    pass: LayerPass<A>,
    stretch: Stretch,
    activations: Activations<V>,
    gradient: V,
  ): Promise<V | undefined>;
}

/** Runs all layers of a model forwards and backwards. */
export class LayerRunner<A, V extends Values> {
  readonly #passes: StretchPasses<A, V>;
  readonly #pool: ValueMemory<V>;

  constructor(passes: StretchPasses<A, V>, pool: ValueMemory<V>) {
    this.#passes = passes;
    this.#pool = pool;
  }

  /** Takes ownership of `hidden`. */
  async forward(pass: LayerPass<A>, hidden: V, keep: Keep): Promise<ForwardResult<V>> {
    const kept: Activations<V>[] = [];
    let current = hidden;
    for (const stretch of this.#passes.stretches) {
      const input = current;
      const keepsAll = keep === "everything";
      const { next, ...values } = await this.#passes.forward(pass, stretch, input, keepsAll);
      pass.advance(stretch.layers);
      current = next;
      if (keepsAll) kept.push({ ...values, hidden: input });
      else this.#pool.giveBack(...Object.values<V>(values));
      if (keep === "inputs") kept.push({ hidden: input });
      if (keep === "nothing") this.#pool.giveBack(input);
    }
    return { hidden: current, kept };
  }

  /** Adds the gradients of all layers; takes ownership of `kept` and `gradient`. Returns that of the input. */
  async backward(
    pass: LayerPass<A>,
    kept: readonly Activations<V>[],
    gradient: V,
  ): Promise<V | undefined> {
    let current: V | undefined = gradient;
    for (const [index, stretch] of [...this.#passes.stretches.entries()].toReversed()) {
      if (current === undefined) throw new Error("no gradient flows into the layers that are left");
      const ofNext = current;
      const activations = await this.#complete(pass, stretch, at(kept, index));
      current = await this.#passes.backward(pass, stretch, activations, ofNext);
      pass.advance(stretch.layers);
      this.#pool.giveBack(ofNext, ...Object.values(activations));
    }
    return current;
  }

  /** Recomputes values that were not kept. */
  async #complete(
    pass: LayerPass<A>,
    stretch: Stretch,
    kept: Activations<V>,
  ): Promise<Activations<V>> {
    const { hidden, ...values } = kept;
    if (hidden === undefined) throw new Error("the input of a stretch was not kept");
    if (Object.keys(values).length > 0) return kept;
    const { next, ...computed } = await this.#passes.forward(pass, stretch, hidden, true);
    this.#pool.giveBack(next);
    return { ...computed, hidden };
  }
}

/**
 * Passes short sequences through the layers, several layers per program.
 *
 * Starting a program costs about as much as a small layer, so small models run all their layers in one;
 * large models run one layer at a time, so that other work can run in between.
 */
export class SegmentPasses<V extends Values> implements StretchPasses<ShortArrangement, V> {
  readonly stretches: readonly Stretch[];
  readonly #config: ModelConfig;
  readonly #weights: FedWeights;
  readonly #trained: Trained;
  readonly #programs: TrainingPrograms;
  readonly #pool: ValueMemory<V>;
  readonly #keptKind: KeptKind;

  constructor(
    config: ModelConfig,
    weights: FedWeights,
    trained: Trained,
    programs: TrainingPrograms,
    pool: ValueMemory<V>,
    budget: Pick<TrainingBudget, "layersPerSegment" | "keptKind">,
  ) {
    this.#config = config;
    this.#weights = weights;
    this.#trained = trained;
    this.#programs = programs;
    this.#pool = pool;
    this.#keptKind = budget.keptKind;
    this.stretches = segmentsOf(config.layers, budget.layersPerSegment);
  }

  async forward(
    pass: LayerPass<ShortArrangement>,
    segment: Stretch,
    hidden: V,
    withActivations: boolean,
  ) {
    const program = await this.#programs.segmentForward(this.#shape(pass, segment));
    const feeds = { ...this.#feeds(pass, segment), hidden };
    const wanted = withActivations ? undefined : ["next"];
    const results = await compute(this.#pool, this.#call(pass, program, feeds), wanted);
    return { ...results, next: defined(results.next) };
  }

  async backward(
    pass: LayerPass<ShortArrangement>,
    segment: Stretch,
    activations: Activations<V>,
    gradient: V,
  ): Promise<V | undefined> {
    const program = await this.#programs.segmentBackward(this.#shape(pass, segment));
    const feeds = {
      ...this.#feeds(pass, segment),
      ...activations,
      [gradientName("next")]: gradient,
    };
    const values = await computeGradients(
      this.#pool,
      this.#call(pass, program, feeds),
      pass.parameters,
      (result) => gradientTarget(segment, result),
    );
    return values[gradientName("hidden")];
  }

  #shape(pass: LayerPass<ShortArrangement>, { first, layers }: Stretch): SegmentShape {
    const indices = Array.from({ length: layers }, (_, index) => first + index);
    return {
      kinds: indices.map((layer) => layerKind(this.#config, layer)),
      layout: pass.arrangement.layout,
      chunks: pass.arrangement.chunks,
      inputGradient: first > 0 || this.#trained.kind === "full",
      keep: this.#keptKind,
    };
  }

  #feeds(pass: LayerPass<ShortArrangement>, segment: Stretch): PortValues {
    const feeds: Record<string, PortData> = {
      ...pass.arrangement.feeds,
      ...rotaryFeeds(pass),
      ...pass.parameters.shared,
    };
    for (let index = 0; index < segment.layers; index++) {
      const layer = segment.first + index;
      const own = { ...at(this.#weights.layers, layer), ...pass.parameters.feeds(layer) };
      for (const [name, data] of Object.entries(own)) feeds[inSegment(index, name)] = data;
    }
    return feeds;
  }

  #call(pass: LayerPass<ShortArrangement>, program: Program, feeds: PortValues): ProgramCall {
    const sizes = {
      ...pass.arrangement.sizes,
      tokens: pass.tokenCount,
      positions: pass.tableRows,
      rank: pass.parameters.rank,
    };
    return { program, feeds, sizes, pause: pass.pause };
  }
}

/** Segments of nearly equal length. */
function segmentsOf(layers: number, perSegment: number): readonly Stretch[] {
  const count = Math.ceil(layers / perSegment);
  const size = Math.ceil(layers / count);
  return Array.from({ length: count }, (_, index) => ({
    first: index * size,
    layers: Math.min(size, layers - index * size),
  })).filter((segment) => segment.layers > 0);
}

/** The parameter behind a result such as `gradient.2.lora.q.b`. */
function gradientTarget(segment: Stretch, result: string): GradientTarget | undefined {
  const match = /^gradient\.(\d+)\.(.+)$/.exec(result);
  const [, index, feed] = match ?? [];
  if (index === undefined || feed === undefined) return undefined;
  return { result, place: segment.first + Number(index), feed };
}
