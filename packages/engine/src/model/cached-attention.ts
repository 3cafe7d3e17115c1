import type { LayerKind } from "@tinker-ts/hub/weights";
import { Dim, type DimLike } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import {
  cachedAttention,
  concat,
  dimAt,
  headStep,
  reshape,
  split,
  zeros,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import type { ModelConfig } from "./model-config.js";
import { at } from "../util/arrays.js";
import type { SequenceRows } from "./sampling-projector.js";
import { attentionScale, type AttentionInputs } from "./transformer.js";

/** Name of a value that the layers of one window share. */
export function ofWindow(name: string, window: number | null): string {
  return window === null ? name : `${name}.${window}`;
}

/** The width of a head in a cache: heads are padded with zeros to a size that the runtime supports. */
export function cachedHeadWidth({ headDim }: ModelConfig): number {
  return Math.ceil(headDim / headStep) * headStep;
}

/** Lengths of a batch's sequences in the caches of a window; the same for all of its layers. */
interface CacheExtent {
  readonly lastPlaces: Tensor;
  readonly longest: Tensor;
}

function extentOf(graph: Graph, { sequences }: SequenceRows, window: number | null): CacheExtent {
  const input = (name: string, size: DimLike): Tensor => {
    const own = ofWindow(name, window);
    return graph.inputs.get(own) ?? graph.input(own, [size], "int32");
  };
  return { lastPlaces: input("lastPlaces", sequences), longest: input("longest", 1) };
}

/** Attention of a layer's new tokens, [tokens, heads * headDim], and its caches extended by them. */
export function attendToCache(
  graph: Graph,
  config: ModelConfig,
  { window }: LayerKind,
  { query, key, value }: AttentionInputs,
  rows: SequenceRows,
  prefix: string,
): { readonly attended: Tensor; readonly keys: Tensor; readonly values: Tensor } {
  const { heads, kvHeads, headDim } = config;
  const { sequences, newTokens } = rows;
  const width = cachedHeadWidth(config);
  const places = Dim.symbol(ofWindow("capacity", window));
  const cacheShape = [sequences, kvHeads, places, width];
  const bySequence = (values: Tensor, count: number): Tensor =>
    reshape(fillHeads(values, count, headDim, width), [sequences, newTokens, count * width]);
  const { attended, keys, values } = cachedAttention({
    query: bySequence(query, heads),
    key: bySequence(key, kvHeads),
    value: bySequence(value, kvHeads),
    cachedKeys: graph.input(`${prefix}keys`, cacheShape),
    cachedValues: graph.input(`${prefix}values`, cacheShape),
    ...extentOf(graph, rows, window),
    scale: attentionScale(config),
    window,
  });
  const tokens = sequences.times(newTokens);
  const trimmed = trimHeads(reshape(attended, [tokens, heads, width]), headDim, width);
  return { attended: reshape(trimmed, [tokens, heads * headDim]), keys, values };
}

function fillHeads(values: Tensor, heads: number, headDim: number, width: number): Tensor {
  if (width === headDim) return values;
  const tokens = dimAt(values, 0);
  const perHead = reshape(values, [tokens, heads, headDim]);
  const rest = [tokens, Dim.of(heads), Dim.of(width - headDim)];
  return concat([perHead, zeros(values, rest)], 2);
}

function trimHeads(values: Tensor, headDim: number, width: number): Tensor {
  return width === headDim ? values : at(split(values, 2, [headDim, width - headDim]), 0);
}
