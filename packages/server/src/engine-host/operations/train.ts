import { decodeProto, encodeProto, type WireValue } from "tinker-ts/wire";
import { badRequest } from "../../errors/api-error.js";
import { runPass, runStep } from "../journal-entry.js";
import { toPassOutput } from "../training-data.js";
import { jsonResult, type Operation, type OperationOutput } from "./operation.js";

/** Loss and log-probabilities; `forward_backward` also leaves gradients that add up until the next step. */
const pass =
  (change: OperationOutput["change"]): Operation =>
  async ({ context }, { live, payload, signal }) => {
    const request = decodeProto("ForwardBackwardRequest", payload);
    checkBatch(request, context.limits.maxBatchData);
    const result = await runPass(live.adapter, request, signal);
    return {
      resultType: "ForwardBackwardOutput",
      result: encodeProto("ForwardBackwardOutput", toPassOutput(result)),
      usage: [{ kind: "training", amount: result.tokens }],
      change,
    };
  };

export const forward = pass("none");
export const forwardBackward = pass("journaled");

/** One optimizer step; it uses the gradients up. */
export const optimStep: Operation = async (_parts, { live, payload }) => {
  const metrics = await runStep(live.adapter, payload);
  return { ...jsonResult("OptimStepResponse", { metrics }), usage: [], change: "journaled" };
};

function checkBatch(request: WireValue<"ForwardBackwardRequest">, maxBatchData: number): void {
  const { length } = request.forwardBackwardInput.data;
  if (length >= 1 && length <= maxBatchData) return;
  throw badRequest("data", `must have at least 1 and at most ${maxBatchData} data, got ${length}`);
}
