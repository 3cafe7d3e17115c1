import type { RouteName } from "tinker-ts/wire";
import type { Core } from "../core.js";
import type { AnswerRefused } from "../http/call.js";

const numberedRoutes: ReadonlySet<RouteName> = new Set<RouteName>([
  "forwardBackward",
  "forward",
  "optimStep",
  "saveWeights",
  "saveWeightsForSampler",
  "loadWeights",
]);

/**
 * Accepts what cannot be decoded when its place in a sequence can: it fails in its turn. The official
 * client gives the number of a refused request to no other one; the model would wait for it for ever.
 */
export function refusedRequests({ models }: Core): AnswerRefused {
  return async (name, caller, error) => {
    const place = numberedRoutes.has(name) ? error.place : undefined;
    if (!place) throw error;
    const { modelId, seqId } = place;
    return { requestId: await models.refuse(caller, modelId, seqId, error), modelId };
  };
}
