import type { PassResult, StepMetrics } from "@tinker-ts/engine";
import { decodeJson, decodeProto, type WireValue } from "tinker-ts/wire";
import type { TrainedAdapter } from "../engine-port/engine-port.js";
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

/** An optimizer step. */
export function runStep(adapter: TrainedAdapter, payload: Uint8Array): Promise<StepMetrics> {
  return adapter.optimStep(decodeJson("OptimStepRequest", payload).adamParams);
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
