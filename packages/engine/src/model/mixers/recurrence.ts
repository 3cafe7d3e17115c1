import { allLayerKinds, mixerOf, type LayerKind } from "@tinker-ts/hub/weights";
import type { Tensor } from "../../graph/tensor.js";
import type { ModelConfig } from "../model-config.js";

/**
 * The two building blocks of mixers other than attention. Mixers are written once, on rows of tokens; training computes the blocks
 * over whole sequences, sampling over new tokens with the states of earlier ones.
 */
export interface Recurrence {
  /** A causal convolution of every channel, [tokens, channels]. */
  convolve(value: Tensor, kernel: Tensor, bias?: Tensor): Tensor;
  /** Reads tokens into a state and from it; the result is [tokens, valueHeads * valueDim]. */
  scan(rows: ScanRows, sizes: ScanSizes): Tensor;
}

/** Rows of tokens that are read into a state. */
export interface ScanRows {
  /** [tokens, keyHeads * keyDim] */
  readonly query: Tensor;
  readonly key: Tensor;
  /** [tokens, valueHeads * valueDim] */
  readonly value: Tensor;
  /** Logarithm of the state's decay, [tokens, valueHeads]. */
  readonly decay: Tensor;
  /** How far a value replaces the state's value for its key, [tokens, valueHeads]; absent where it is added. */
  readonly strength?: Tensor;
}

/** Sizes of a state. */
export interface ScanSizes {
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
}

/** The parts of a recurrent layer's state. */
export type StatePart = "conv" | "scan";

/** The shapes of one sequence's state in a layer; none where the layer has attention. */
export function stateShapes(
  config: ModelConfig,
  kind: LayerKind,
): Readonly<Partial<Record<StatePart, readonly number[]>>> {
  const { deltaRule, convolution, mamba } = config;
  switch (mixerOf(kind)) {
    case "attention":
      return {};
    case "deltaRule": {
      if (deltaRule === undefined) throw missing("delta rule");
      const { keyHeads, valueHeads, keyDim, valueDim, kernel } = deltaRule;
      const channels = 2 * keyHeads * keyDim + valueHeads * valueDim;
      return { conv: [channels, kernel - 1], scan: [valueHeads, keyDim, valueDim] };
    }
    case "convolution":
      if (convolution === undefined) throw missing("convolution");
      return { conv: [config.hiddenSize, convolution.kernel - 1] };
    case "mamba": {
      if (mamba === undefined) throw missing("Mamba");
      const { heads, headDim, groups, stateSize, kernel } = mamba;
      const channels = heads * headDim + 2 * groups * stateSize;
      return { conv: [channels, kernel - 1], scan: [heads, stateSize, headDim] };
    }
  }
}

/** The parts of the state of a layer. */
export function statePartsOf(config: ModelConfig, kind: LayerKind): readonly StatePart[] {
  const shapes = stateShapes(config, kind);
  return (["conv", "scan"] as const).filter((part) => shapes[part] !== undefined);
}

/** Lengths of all states of one sequence, in the order of layers and their parts. */
export function stateLengths(config: ModelConfig): readonly number[] {
  return allLayerKinds(config).flatMap((kind) => {
    const shapes = stateShapes(config, kind);
    return statePartsOf(config, kind).map((part) =>
      (shapes[part] ?? []).reduce((product, size) => product * size, 1),
    );
  });
}

function missing(what: string): Error {
  return new Error(`the configuration has no ${what}`);
}
