import { ApiError } from "../../errors/api-error.js";
import type { RequestKind } from "../../store/requests-table.js";
import { loadOperation, type LoadParts } from "./load.js";
import { jsonResult, type TrainingOperation } from "./operation.js";
import { saveOperations, type SaveParts } from "./save.js";
import { trainOperations, type TrainParts } from "./train.js";

/** What each kind of request does to a model in memory. */
export type Operations = Readonly<
  Record<Exclude<RequestKind, "sample" | "unload_model">, TrainingOperation>
>;

/** All operations of a server. */
export function createOperations(parts: TrainParts & SaveParts & LoadParts): Operations {
  const { store } = parts;
  return {
    /** A new adapter; it was made from its seed before this is called. */
    create_model: {
      resource: "engine",
      run: async ({ live: { model } }) => ({
        ...jsonResult("CreateModelResponse", { modelId: model.modelId }),
        usage: [],
        change: "none",
        write: () => store.models.setState(model.modelId, "live"),
      }),
    },
    ...trainOperations(parts),
    ...saveOperations(parts),
    load_weights: loadOperation(parts),
    /** A mistake in the place of a request. */
    refused: {
      resource: "none",
      async run({ bytes }) {
        throw new ApiError(400, Buffer.from(await bytes()).toString());
      },
    },
  };
}
