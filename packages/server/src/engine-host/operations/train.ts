import { encodeProto } from "tinker-ts/wire";
import type { TrainedAdapter } from "../../engine-port/engine-port.js";
import { badRequest } from "../../errors/api-error.js";
import { toFailure } from "../../errors/failure.js";
import { runPass, runStep } from "../journal-entry.js";
import type { LiveModel } from "../live-model.js";
import { toPassOutput, toStepMetrics } from "../training-data.js";
import { jsonResult, type Operation, type OperationOutput } from "./operation.js";

/** How far the journal may outgrow its bound while gradients are waiting for their step. */
const maxPassesFactor = 4;

/** Loss and log-probabilities; `forward_backward` also leaves gradients that add up until the next step. */
const pass =
  (change: OperationOutput["change"]): Operation =>
  async ({ context }, { live, readPass, request, signal }) => {
    if (change === "journaled") checkJournal(live, context.limits.maxJournalBytes);
    const order = context.passes.take(request.requestId) ?? (await readPass());
    const run = (adapter: TrainedAdapter) => runPass(adapter, order, signal);
    const begunAt = context.clock.elapsed();
    const result = await (change === "none" ? run(live.adapter) : live.change(run));
    const engineMs = context.clock.elapsed() - begunAt;
    const bytes = encodeProto("ForwardBackwardOutput", toPassOutput(result));
    return {
      settled: { state: "done", resultType: "ForwardBackwardOutput", bytes, engineMs },
      usage: [{ kind: "training", amount: order.tokens }],
      change,
      telling: {
        point: { kind: order.forwardOnly ? "forward" : "pass", metrics: result.metrics },
        ...(order.forwardOnly
          ? {}
          : { lossFn: order.lossFn, pass: { data: order.data, outputs: result.outputs } }),
      },
    };
  };

export const forward = pass("none");
export const forwardBackward = pass("journaled");

/** One optimizer step; it uses the gradients up, also those that it has to refuse. */
export const optimStep: Operation = async ({ context }, { live, payload, request }) => {
  const order = await payload();
  const begunAt = context.clock.elapsed();
  const step = await live.change((adapter) => runStep(adapter, order));
  const engineMs = context.clock.elapsed() - begunAt;
  if (step instanceof Error) {
    const failure = toFailure(step, context.logger);
    const mark = { kind: "failed", text: failure.error, subject: request.requestId };
    return { settled: failure, usage: [], change: "journaled", telling: { mark } };
  }
  const metrics = toStepMetrics(step);
  return {
    ...jsonResult("OptimStepResponse", { metrics }, { engineMs }),
    usage: [],
    change: "journaled",
    telling: { point: { kind: "step", metrics } },
  };
};

/** Waiting gradients cannot be written out, so the passes that led to them stay in the journal. */
function checkJournal(live: LiveModel, maxJournalBytes: number): void {
  if (!live.hasGradients || live.journalBytes <= maxPassesFactor * maxJournalBytes) return;
  throw badRequest(
    "forward_backward",
    `${live.journalBytes} bytes of data have been passed without an optimizer step; call optim_step`,
  );
}
