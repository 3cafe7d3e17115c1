import type { ValueMemory, Values } from "../execution/device-array.js";
import { at } from "../util/arrays.js";
import type { PortData, PortValues } from "../execution/program.js";
import type { LongArrangement, ShortArrangement } from "./micro-batch.js";
import type { GradientTarget } from "./gradient-sum.js";

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
