import type { PassResult, StepMetrics } from "@tinker-ts/engine";
import { decodeJson, decodeProto, type WireValue } from "tinker-ts/wire";
import type { TrainedAdapter } from "../engine-port/engine-port.js";
import { isEngineRefusal } from "../errors/failure.js";
import type { RequestKind } from "../store/requests-table.js";
import { toEngineData } from "./training-data.js";

/*
 * The operations that the journal keeps. Carrying one out for the first time and repeating it after a
 * crash go through the same functions, so that they cannot differ.
 */

/** The kinds of operations that change a model step by step. */
export type JournaledKind = Extract<RequestKind, "forward_backward" | "optim_step">;

/** A forward or forward/backward pass over data that were checked. */
export function runPass(
  adapter: TrainedAdapter,
  { forwardBackwardInput: input, forwardOnly }: WireValue<"ForwardBackwardRequest">,
  signal?: AbortSignal,
): Promise<PassResult & { readonly tokens: number }> {
  const data = toEngineData(input.data);
  const loss = {
    lossFn: input.lossFn,
    ...(input.lossFnConfig ? { lossFnConfig: input.lossFnConfig } : {}),
    ...(signal ? { signal } : {}),
  };
  const tokens = data.reduce((sum, datum) => sum + datum.tokens.length, 0);
  const pass = forwardOnly ? adapter.forward(data, loss) : adapter.forwardBackward(data, loss);
  return pass.then((result) => ({ ...result, tokens }));
}

/**
 * An optimizer step. A gradient that is not finite is used up all the same, so its refusal is something
 * that the step has done: it is returned, not thrown, and belongs into the journal.
 */
export async function runStep(
  adapter: TrainedAdapter,
  payload: Uint8Array,
): Promise<StepMetrics | Error> {
  try {
    return await adapter.optimStep(decodeJson("OptimStepRequest", payload).adamParams);
  } catch (error) {
    if (isEngineRefusal(error) && error.code === "gradient_not_finite") return error;
    throw error;
  }
}

/** Repeats an operation of the journal for its effect. */
export async function repeat(
  adapter: TrainedAdapter,
  kind: JournaledKind,
  payload: Uint8Array,
): Promise<void> {
  if (kind === "forward_backward") {
    await runPass(adapter, decodeProto("ForwardBackwardRequest", payload));
  } else await runStep(adapter, payload);
}
