import { encodeProto } from "tinker-ts/wire";
import { runPass, runStep } from "../journal-entry.js";
import { toPassOutput } from "../training-data.js";
import { jsonResult, type Operation } from "./operation.js";

/** Loss and log-probabilities, no gradients. */
export const forward: Operation = async (_parts, { live, payload, signal }) => {
  const pass = await runPass(live.adapter, "forward", payload, signal);
  return {
    resultType: "ForwardBackwardOutput",
    result: encodeProto("ForwardBackwardOutput", toPassOutput(pass)),
    usage: [{ kind: "training", amount: pass.tokens }],
    change: "none",
  };
};

/** Loss, log-probabilities, and gradients that add up until the next step. */
export const forwardBackward: Operation = async (_parts, { live, payload, signal }) => {
  const pass = await runPass(live.adapter, "forward_backward", payload, signal);
  return {
    resultType: "ForwardBackwardOutput",
    result: encodeProto("ForwardBackwardOutput", toPassOutput(pass)),
    usage: [{ kind: "training", amount: pass.tokens }],
    change: "journaled",
  };
};

/** One optimizer step; it uses the gradients up. */
export const optimStep: Operation = async (_parts, { live, payload }) => {
  const metrics = await runStep(live.adapter, payload);
  return { ...jsonResult("OptimStepResponse", { metrics }), usage: [], change: "journaled" };
};
