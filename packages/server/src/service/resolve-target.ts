import type { WireValue } from "tinker-ts/wire";
import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { BaseModels } from "../engine-host/base-models.js";
import type { SampleTarget } from "../engine-host/sample-target.js";
import { badRequest, notFound } from "../errors/api-error.js";
import type { KnownSamplers } from "./known-samplers.js";

/** Where addresses are looked up. */
export interface Addressees {
  readonly samplers: KnownSamplers;
  readonly bases: BaseModels;
  readonly checkpoints: Checkpoints;
}

type Address = Pick<WireValue<"SampleRequest">, "samplingSessionId" | "modelPath" | "baseModel">;

/** Finds what a request is addressed to: a sampling session, a checkpoint, or a base model. */
export function resolveTarget(parts: Addressees, address: Address, owner: string): SampleTarget {
  const { samplingSessionId, modelPath, baseModel } = address;
  if (samplingSessionId !== null) return samplerTarget(parts, samplingSessionId, owner);
  if (modelPath !== null) return pathTarget(parts, modelPath, baseModel, owner);
  if (baseModel === null) {
    throw badRequest("sample", "needs sampling_session_id, model_path or base_model");
  }
  const name = parts.bases.check(baseModel);
  return { baseModel: name, checkpoint: null, sessionId: null, samplerId: null };
}

function samplerTarget(parts: Addressees, samplerId: string, owner: string): SampleTarget {
  const sampler = parts.samplers.get(samplerId);
  if (sampler?.owner !== owner) throw notFound(`sampling session ${samplerId}`);
  const { sessionId, baseModel, modelPath } = sampler;
  const checkpoint = modelPath === null ? null : parts.checkpoints.readable(modelPath, [owner]);
  return { baseModel, checkpoint, sessionId, samplerId };
}

/** Finds a checkpoint to sample from; a base model may be named too but must be the right one. */
export function pathTarget(
  parts: Addressees,
  modelPath: string,
  baseModel: string | null,
  owner: string,
): SampleTarget {
  const checkpoint = parts.checkpoints.readable(modelPath, [owner]);
  if (baseModel !== null && baseModel !== checkpoint.baseModel) {
    throw badRequest(
      "base_model",
      `${baseModel} is not what ${modelPath} was trained on; that is ${checkpoint.baseModel}`,
    );
  }
  parts.bases.check(checkpoint.baseModel);
  return { baseModel: checkpoint.baseModel, checkpoint, sessionId: null, samplerId: null };
}
