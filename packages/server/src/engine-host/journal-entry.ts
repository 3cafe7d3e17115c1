import type { PassResult, StepMetrics } from "@tinker-ts/engine";
import { decodeJson } from "tinker-ts/wire";
import type { Context } from "../context/context.js";
import type { EnginePass } from "../decoding/engine-pass.js";
import type { TrainedAdapter } from "../engine-port/engine-port.js";
import { isEngineRefusal } from "../errors/failure.js";
import type { RequestKind } from "../store/requests-table.js";
import type { LiveModel } from "./live-model.js";

/*
 * The operations that the journal keeps. Carrying one out for the first time and repeating it after a
 * crash go through the same functions, so that they cannot differ.
 */

/** The kinds of operations that change a model step by step. */
export type JournaledKind = Extract<RequestKind, "forward_backward" | "optim_step">;

/** A forward or forward/backward pass. */
export function runPass(
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

/** Repeats an operation of the journal for its effect; tells what it came to, in tokens. */
export async function repeat(
  { passes, ledger }: Context,
  { adapter, model }: LiveModel,
  kind: JournaledKind,
  requestId: string,
): Promise<number> {
  if (kind === "optim_step") {
    await runStep(adapter, await ledger.payload(requestId));
    return 0;
  }
  const pass = await passes.decode(model.owner, ledger.stored(requestId));
  await runPass(adapter, pass);
  return pass.tokens;
}
