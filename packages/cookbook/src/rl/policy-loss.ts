import type { CustomLossFn, ForwardBackwardOutput, TrainingClient } from "tinker-ts";
import { toTrainingDatum, type PolicyDatum } from "./policy-datum.js";

/** A loss on sampled tokens: one of the service with its settings, or a custom one. */
export type PolicyLoss =
  | { readonly name: "importance_sampling" }
  | {
      readonly name: "ppo" | "cispo";
      /** Lower bound on the ratio itself. @default 0.8 for ppo, 0 for cispo */
      readonly clipLowThreshold?: number | undefined;
      /** Upper bound on the ratio itself. @default 1.2 for ppo, 4 for cispo */
      readonly clipHighThreshold?: number | undefined;
    }
  | {
      readonly name: "dro";
      /** Strength of the pull towards the sampler. @default 0.05 */
      readonly beta?: number | undefined;
    }
  | {
      readonly name: "custom";
      /** The loss for some data, for instance `composeLoss(…).at(step)` with their advantages as side data. */
      readonly loss: (data: readonly PolicyDatum[], step: number) => CustomLossFn;
    }
  | {
      readonly name: "own_targets";
      /** Submits the pass itself, with targets other than the sampled tokens; metrics of its result are logged. */
      readonly submit: (
        training: TrainingClient,
        data: readonly PolicyDatum[],
        step: number,
      ) => PromiseLike<ForwardBackwardOutput>;
    };

const clipDefaults = { ppo: [0.8, 1.2], cispo: [0, 4] } as const;

/** Submits the pass of a loss; settings are always sent, because servers differ in their defaults. */
export function submitPolicyPass(
  training: TrainingClient,
  data: readonly PolicyDatum[],
  loss: PolicyLoss,
  step: number,
): PromiseLike<ForwardBackwardOutput> {
  if (loss.name === "own_targets") return loss.submit(training, data, step);
  if (loss.name === "custom") {
    const bare = data.map(({ input, targets }) => ({
      modelInput: input,
      lossFnInputs: { target_tokens: targets },
    }));
    return training.forwardBackwardCustom(bare, loss.loss(data, step));
  }
  const lossFnConfig = settingsOf(loss);
  return training.forwardBackward(
    data.map(toTrainingDatum),
    loss.name,
    lossFnConfig ? { lossFnConfig } : {},
  );
}

/**
 * Data as the loss needs them. The square of `dro` acts on every token, so where nothing was sampled it must
 * compare a token with itself: with what the model says of it now.
 */
export async function readyForLoss(
  training: TrainingClient,
  data: readonly PolicyDatum[],
  loss: PolicyLoss,
): Promise<readonly PolicyDatum[]> {
  if (loss.name !== "dro" || data.length === 0) return data;
  const plain = data.map(({ input, targets }) => ({
    modelInput: input,
    lossFnInputs: { target_tokens: targets, weights: new Float32Array(targets.length) },
  }));
  const { lossFnOutputs } = await training.forward(plain, "cross_entropy");
  return data.map((datum, index) => {
    const current = lossFnOutputs[index]!["logprobs"]!.data as Float32Array;
    const logprobs = datum.logprobs.map((value, at) =>
      datum.mask[at] === 1 ? value : current[at]!,
    );
    return { ...datum, logprobs };
  });
}

function settingsOf(loss: PolicyLoss): Record<string, number> | undefined {
  switch (loss.name) {
    case "ppo":
    case "cispo": {
      const [low, high] = clipDefaults[loss.name];
      const { clipLowThreshold = low, clipHighThreshold = high } = loss;
      return { clip_low_threshold: clipLowThreshold, clip_high_threshold: clipHighThreshold };
    }
    case "dro":
      return { beta: loss.beta ?? 0.05 };
    default:
      return undefined;
  }
}
