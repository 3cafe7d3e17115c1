import type { SampleRequest, SampleResult } from "@tinker-ts/engine";
import type { BaseModels } from "./base-models.js";
import type { EngineGuard } from "./engine-guard.js";
import type { SampleTarget } from "./sample-target.js";
import type { SamplerWeights } from "./sampler-weights.js";

/** What a sampler works with. */
export interface SamplerParts {
  readonly bases: BaseModels;
  readonly weights: SamplerWeights;
  readonly guard: EngineGuard;
}

/**
 * Samples from a target. When the engine breaks, the request may be tried again, since it has changed
 * nothing; not so when its tokens have already been told to somebody.
 */
export function runSample(
  parts: SamplerParts,
  target: SampleTarget,
  order: Omit<SampleRequest, "adapter">,
): Promise<SampleResult> {
  return parts.guard.run(order.onToken ? 1 : 2, async () => {
    const model = await parts.bases.load(target.baseModel, target.checkpoint?.runId);
    if (!target.checkpoint) return model.sample(order);
    return parts.weights.use(target.checkpoint, (adapter) => model.sample({ ...order, adapter }));
  });
}
