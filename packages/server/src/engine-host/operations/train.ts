import { decodeProto, encodeProto, type WireValue } from "tinker-ts/wire";
import { badRequest } from "../../errors/api-error.js";
import { runPass, runStep } from "../journal-entry.js";
import type { LiveModel } from "../live-model.js";
import { toPassOutput, toStepMetrics } from "../training-data.js";
import { jsonResult, type Operation, type OperationOutput } from "./operation.js";

/** How far the journal may outgrow its bound while gradients are waiting for their step. */
const maxPassesFactor = 4;

/** Loss and log-probabilities; `forward_backward` also leaves gradients that add up until the next step. */
const pass =
  (change: OperationOutput["change"]): Operation =>
  async ({ context }, { live, payload, signal }) => {
    const request = decodeProto("ForwardBackwardRequest", payload);
    checkBatch(request, context.limits.maxBatchData);
    if (change === "journaled") checkJournal(live, context.limits.maxJournalBytes);
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
  const metrics = toStepMetrics(await runStep(live.adapter, payload));
  return { ...jsonResult("OptimStepResponse", { metrics }), usage: [], change: "journaled" };
};

/** Waiting gradients cannot be written out, so the passes that led to them stay in the journal. */
function checkJournal(live: LiveModel, maxJournalBytes: number): void {
  if (!live.hasGradients || live.journalBytes <= maxPassesFactor * maxJournalBytes) return;
  throw badRequest(
    "forward_backward",
    `${live.journalBytes} bytes of data have been passed without an optimizer step; call optim_step`,
  );
}

function checkBatch(request: WireValue<"ForwardBackwardRequest">, maxBatchData: number): void {
  const { length } = request.forwardBackwardInput.data;
  if (length >= 1 && length <= maxBatchData) return;
  throw badRequest("data", `must have at least 1 and at most ${maxBatchData} data, got ${length}`);
}
