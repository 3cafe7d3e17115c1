import type { Values } from "../execution/device-array.js";
import type { PortData, PortValues } from "../execution/program.js";
import type { LongArrangement, ShortArrangement } from "./arrangement.js";
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
  /** Called between programs: lets other work in, and throws when the pass was cancelled. */
  readonly pause: () => Promise<void>;
  /** Called when some layers have been passed, in either direction. */
  readonly advance: (layers: number) => void;
}

/** How much of the forward pass is kept; what is missing is computed again on the way back. */
export type Keep = "nothing" | "inputs" | "everything";

/** Values by their names in the graphs. */
export type Activations<V extends Values = Float32Array> = Record<string, V>;

/** Hidden states after the last layer, and what was kept of each step on the way. */
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
