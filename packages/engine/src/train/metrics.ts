import { at } from "../util/arrays.js";
import type { PreparedDatum } from "./datum.js";
import { losses, type LossName } from "./losses.js";

/** Numbers of a call; each key is `name:reduction`, where the reduction defines how parts of a call are merged. */
export type Metrics = Readonly<Record<string, number>>;

/** The results of a pass for a datum. */
interface DatumResult {
  readonly logprobs: Float32Array;
  readonly terms: Float32Array;
}

/**
 * Metrics of a call: the loss, the number of targets that count, and for losses with a sampler's
 * log-probabilities the range of the ratio, the sum of q - p (an estimate of KL(q, p)) and how many
 * ratios lie outside the clip range.
 */
export function lossMetrics(
  name: LossName,
  data: readonly PreparedDatum[],
  results: readonly DatumResult[],
): Metrics {
  let [loss, targets, weights] = [0, 0, 0];
  let [kl, clipped, lowest, highest] = [0, 0, Infinity, 0];
  const { gate } = losses[name];
  for (const [index, datum] of data.entries()) {
    const { logprobs, terms } = at(results, index);
    const gates = gate === undefined ? undefined : datum.inputs[gate];
    const sampler = datum.inputs.logprobs;
    const { clip_low_threshold: low, clip_high_threshold: high } = datum.settings;
    for (let i = 0; i < terms.length; i++) {
      loss += at(terms, i);
      if (gates !== undefined && at(gates, i) === 0) continue;
      targets += 1;
      weights += datum.inputs.weights?.[i] ?? 0;
      if (sampler === undefined) continue;
      const drift = at(logprobs, i) - at(sampler, i);
      const ratio = Math.exp(drift);
      kl -= drift;
      lowest = Math.min(lowest, ratio);
      highest = Math.max(highest, ratio);
      if (ratio < (low?.[i] ?? 0) || ratio > (high?.[i] ?? Infinity)) clipped += 1;
    }
  }
  const common = { "loss:sum": loss, "targets:sum": targets };
  if (name === "cross_entropy") return { ...common, "weights:sum": weights };
  // Every call reports the same keys: parts of a call are merged only where all of them have a key.
  const ratios = {
    "ratio:min": targets === 0 ? 1 : lowest,
    "ratio:max": targets === 0 ? 1 : highest,
    "kl:sum": kl,
  };
  const clips = "clip_low_threshold" in losses[name].settings ? { "clipped:sum": clipped } : {};
  return { ...common, ...ratios, ...clips };
}
