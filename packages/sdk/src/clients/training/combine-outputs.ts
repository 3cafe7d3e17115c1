import type { ForwardBackwardOutput } from "../../types/training.js";
import { reduceMetrics } from "./reduce-metrics.js";

/** The output of a call from the outputs of its chunks, in chunk order. */
export function combineOutputs(chunks: readonly ForwardBackwardOutput[]): ForwardBackwardOutput {
  const [first] = chunks;
  return {
    ...first,
    lossFnOutputType: first?.lossFnOutputType ?? "",
    lossFnOutputs:
      chunks.length === 1
        ? first!.lossFnOutputs
        : chunks.flatMap(({ lossFnOutputs }) => lossFnOutputs),
    metrics: reduceMetrics(
      chunks.map(({ metrics, lossFnOutputs }) => ({ metrics, weight: lossFnOutputs.length })),
    ),
  };
}
