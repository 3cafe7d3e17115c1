import { layerKind } from "@tinker-ts/hub/weights";
import type { ModelConfig } from "../model/model-config.js";
import type { FedWeights } from "../model/model-weights.js";
import type { ValueMemory, Values } from "../execution/device-array.js";
import type { PortData, PortValues, Program } from "../execution/program.js";
import type { KeptKind } from "../graph/kept-values.js";
import { at } from "../util/arrays.js";
import type { ShortArrangement } from "./micro-batch.js";
import type { GradientTarget } from "./gradient-sum.js";
import { inSegment } from "./graphs/segment.js";
import { gradientName, type Trained } from "./graphs/trained.js";
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
  type SegmentShape,
  type TrainingPrograms,
} from "./training-programs.js";
import type { TrainingBudget } from "./training-budget.js";

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
