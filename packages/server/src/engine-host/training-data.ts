import type { PassResult, StepMetrics } from "@tinker-ts/engine";
import { TensorData, type WireInput } from "tinker-ts/wire";

/** What the engine gave back, in the form of the API. */
export function toPassOutput(pass: PassResult): WireInput<"ForwardBackwardOutput"> {
  return {
    lossFnOutputType: "TorchLossReturn",
    lossFnOutputs: pass.outputs.map(({ logprobs, shape }) => ({
      logprobs: new TensorData({ data: logprobs, shape }),
    })),
    metrics: { ...pass.metrics },
  };
}

/** What a step did, under the names that clients know. */
export function toStepMetrics(step: StepMetrics): Record<string, number> {
  return {
    "grad_norm:mean": step.gradientNorm,
    "update_norm:mean": step.updateNorm,
    "learning_rate:mean": step.learningRate,
    "step:max": step.step,
  };
}
