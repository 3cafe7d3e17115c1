import { ApiError } from "../../errors/api-error.js";
import type { RequestKind } from "../../store/requests-table.js";
import { loadWeights } from "./load.js";
import { jsonResult, type Operation } from "./operation.js";
import { saveWeights, saveWeightsForSampler } from "./save.js";
import { forward, forwardBackward, optimStep } from "./train.js";

/** A new adapter; it was made from its seed before this is called. */
const createModel: Operation = async (parts, { live }) => ({
  ...jsonResult("CreateModelResponse", { modelId: live.model.modelId }),
  usage: [],
  change: "none",
  commit: () => parts.context.store.models.setState(live.model.modelId, "live"),
});

/** A mistake whose turn has come. */
const refused: Operation = async (_parts, { payload }) => {
  throw new ApiError(400, Buffer.from(await payload()).toString());
};

/** What each kind of request does to a model in memory. */
export const operations: Readonly<
  Record<Exclude<RequestKind, "sample" | "unload_model">, Operation>
> = {
  create_model: createModel,
  forward,
  forward_backward: forwardBackward,
  optim_step: optimStep,
  save_weights: saveWeights,
  save_weights_for_sampler: saveWeightsForSampler,
  load_weights: loadWeights,
  refused,
};
