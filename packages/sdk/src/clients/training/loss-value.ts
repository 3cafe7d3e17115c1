import type { Datum } from "../../types/datum.js";
import type { TensorData } from "../../types/tensor-data.js";
import type { ForwardBackwardOutput, LossFnType } from "../../types/training.js";

/** The contribution of one target to a loss: from its logprob now and its inputs. */
type PerTarget = (logprob: number, inputs: TargetInputs) => number;

interface TargetInputs {
  readonly weight: number;
  /** The logprob it was sampled with. */
  readonly sampled: number;
  readonly advantage: number;
}

type Settings = Readonly<Record<string, number>>;

const losses: Readonly<Record<LossFnType, (settings: Settings) => PerTarget>> = {
  cross_entropy:
    () =>
    (logprob, { weight }) =>
      -logprob * weight,
  importance_sampling:
    () =>
    (logprob, { sampled, advantage }) =>
      -Math.exp(logprob - sampled) * advantage,
  ppo:
    ({ clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 }) =>
    (logprob, target) => {
      const ratio = Math.exp(logprob - target.sampled);
      const clipped = Math.min(Math.max(ratio, low), high);
      return -Math.min(ratio * target.advantage, clipped * target.advantage);
    },
  cispo:
    ({ clip_low_threshold: low = 0, clip_high_threshold: high = 4 }) =>
    (logprob, target) => {
      const ratio = Math.exp(logprob - target.sampled);
      return -Math.min(Math.max(ratio, low), high) * logprob * target.advantage;
    },
  dro:
    ({ beta = 0.05 }) =>
    (logprob, { sampled, advantage }) =>
      (beta / 2) * (logprob - sampled) ** 2 - logprob * advantage,
};

/**
 * The output with `loss:sum`, computed from the logprobs where the server left it out: some servers do, and
 * a program would print NaN and compare it with nothing. Without logprobs there is nothing to compute from.
 */
export function withLossValue(
  output: ForwardBackwardOutput,
  data: readonly Datum[],
  lossFn: LossFnType,
  settings: Settings | null,
): ForwardBackwardOutput {
  const { metrics, lossFnOutputs } = output;
  if (Object.hasOwn(metrics, "loss:sum") || lossFnOutputs.length !== data.length) return output;
  const perTarget = losses[lossFn](settings ?? {});
  let sum = 0;
  for (const [index, { lossFnInputs }] of data.entries()) {
    const logprobs = valuesOf(lossFnOutputs[index]?.["logprobs"]);
    if (!logprobs) return output;
    const weights = valuesOf(lossFnInputs["weights"]);
    const sampled = valuesOf(lossFnInputs["logprobs"]);
    const advantages = valuesOf(lossFnInputs["advantages"]);
    const targets = valuesOf(lossFnInputs["target_tokens"])?.length ?? logprobs.length;
    // Some servers leave the logprobs of a prompt out; what there is belongs to the end.
    const first = Math.max(0, targets - logprobs.length);
    for (let place = 0; place < logprobs.length; place++) {
      const target = first + place;
      const weight = Number(weights?.[target] ?? 1);
      const advantage = Number(advantages?.[target] ?? 0);
      if (isSilent(lossFn, weight, advantage)) continue; // a server may send anything there, also NaN
      const inputs = { weight, advantage, sampled: Number(sampled?.[target] ?? 0) };
      sum += perTarget(Number(logprobs[place]), inputs);
    }
  }
  return { ...output, metrics: { ...metrics, "loss:sum": sum } };
}

function isSilent(lossFn: LossFnType, weight: number, advantage: number): boolean {
  if (lossFn === "cross_entropy") return weight === 0;
  return lossFn !== "dro" && advantage === 0;
}

function valuesOf(tensor: TensorData | undefined): ArrayLike<number | bigint> | undefined {
  return tensor?.toDense().data;
}
