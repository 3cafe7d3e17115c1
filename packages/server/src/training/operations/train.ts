import type { PassResult, StepMetrics } from "@tinker-ts/engine";
import { decodeJson, encodeProto, TensorData, type WireInput } from "tinker-ts/wire";
import type { EnginePass } from "../../workers/engine-pass.js";
import type { TrainedAdapter } from "../../engine-port/engine-port.js";
import { badRequest } from "../../errors/api-error.js";
import { isEngineRefusal, toFailure } from "../../errors/failure.js";
import type { ServerLimits } from "../../prices.js";
import type { Logger } from "../../log/logger.js";
import type { Clock } from "../../time/clock.js";
import type { LiveModel } from "../live-models.js";
import { jsonResult, type Done, type TrainingOperation } from "./operation.js";

/** How far the payloads of a model may outgrow their bound while gradients are waiting for their step. */
const maxPassesFactor = 4;

/** What passes and steps work with. */
export interface TrainParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
}

/** Passes and optimizer steps. */
export function trainOperations({
  clock,
  logger,
  limits,
}: TrainParts): Record<"forward" | "forward_backward" | "optim_step", TrainingOperation> {
  /** Loss and log-probabilities; `forward_backward` also leaves gradients that add up until the next step. */
  const pass =
    (change: Done["change"]): TrainingOperation["run"] =>
    async ({ live, pass: readPass, signal }) => {
      const order = await readPass();
      const run = (adapter: TrainedAdapter) => runPass(adapter, order, signal);
      const begunAt = clock.elapsed();
      const result = await (change === "none" ? run(live.adapter) : live.change(run));
      const engineMs = clock.elapsed() - begunAt;
      const { forwardOnly, lossFn, data, tokens } = order;
      const point = { kind: forwardOnly ? "forward" : "pass", metrics: result.metrics } as const;
      const { outputs } = result;
      return {
        result: () => ({
          state: "done",
          resultType: "ForwardBackwardOutput",
          bytes: encodeProto("ForwardBackwardOutput", toPassOutput(result)),
          engineMs,
        }),
        usage: [{ kind: "training", amount: tokens }],
        change,
        update: forwardOnly ? { point } : { point, lossFn, pass: { data, outputs } },
      };
    };

  return {
    forward: { resource: "engine", run: pass("none") },

    forward_backward: {
      resource: "engine",
      check: (live) => checkPasses(live, limits.maxJournalBytes),
      run: pass("journaled"),
    },

    /** It uses the gradients up, also those that it has to refuse. */
    optim_step: {
      resource: "engine",
      async run({ live, bytes, request }) {
        const payload = await bytes();
        const begunAt = clock.elapsed();
        const step = await live.change((adapter) => runStep(adapter, payload));
        const engineMs = clock.elapsed() - begunAt;
        if (step instanceof Error) {
          const failure = toFailure(step, logger);
          const mark = { kind: "failed", text: failure.error, subject: request.requestId };
          return { result: () => failure, usage: [], change: "journaled", update: { mark } };
        }
        const metrics = toStepMetrics(step);
        return {
          ...jsonResult("OptimStepResponse", { metrics }, { engineMs }),
          usage: [],
          change: "journaled",
          update: { point: { kind: "step", metrics } },
        };
      },
    },
  };
}

function runPass(
  adapter: TrainedAdapter,
  { data, lossFn, lossFnConfig, forwardOnly }: EnginePass,
  signal?: AbortSignal,
): Promise<PassResult> {
  const loss = {
    lossFn,
    ...(lossFnConfig ? { lossFnConfig } : {}),
    ...(signal ? { signal } : {}),
  };
  return forwardOnly ? adapter.forward(data, loss) : adapter.forwardBackward(data, loss);
}

/**
 * An optimizer step. A gradient that is not finite is used up all the same, so its refusal is something
 * that the step has done: it is returned, not thrown, and is repeated with the model.
 */
async function runStep(adapter: TrainedAdapter, payload: Uint8Array): Promise<StepMetrics | Error> {
  try {
    const { adamParams } = decodeJson("OptimStepRequest", payload);
    // Steps are stored with them.
    return await adapter.optimStep(adamParams!);
  } catch (error) {
    if (isEngineRefusal(error) && error.code === "gradient_not_finite") return error;
    throw error;
  }
}

/** Waiting gradients cannot be written out, so the passes that led to them stay on disk. */
function checkPasses(live: LiveModel, maxJournalBytes: number): void {
  if (!live.hasGradients || live.journalBytes <= maxPassesFactor * maxJournalBytes) return;
  throw badRequest(
    "forward_backward",
    `${live.journalBytes} bytes of data have been passed without an optimizer step; call optim_step`,
  );
}

/** What the engine gave back, in the form of the API. */
function toPassOutput(pass: PassResult): WireInput<"ForwardBackwardOutput"> {
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
