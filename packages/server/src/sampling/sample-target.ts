import type { WireValue } from "tinker-ts/wire";
import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { BaseModels } from "../engine-host/base-models.js";
import { badRequest, notFound } from "../errors/api-error.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";
import type { Store } from "../store/store.js";

/** The weights a sample request is addressed to. */
export interface SampleTarget {
  readonly baseModel: string;
  /** null for the bare base model. */
  readonly checkpoint: CheckpointRecord | null;
  readonly sessionId: string | null;
  readonly samplerId: string | null;
}

/** Where addresses are looked up. */
export interface TargetParts {
  readonly store: Store;
  readonly bases: BaseModels;
  readonly checkpoints: Checkpoints;
  /** Other names of base models and sampler checkpoints. */
  readonly aliases: Readonly<Record<string, string>>;
}

type Address = Pick<WireValue<"SampleRequest">, "samplingSessionId" | "modelPath" | "baseModel">;

/** Finds what a request is addressed to: a sampling session, a checkpoint, or a base model. */
export function resolveTarget(parts: TargetParts, address: Address, owner: string): SampleTarget {
  const { samplingSessionId, modelPath, baseModel } = address;
  if (samplingSessionId !== null) return samplerTarget(parts, samplingSessionId, owner);
  if (modelPath !== null) return pathTarget(parts, modelPath, baseModel, owner);
  if (baseModel === null) {
    throw badRequest("sample", "needs sampling_session_id, model_path or base_model");
  }
  const meant = Object.hasOwn(parts.aliases, baseModel) ? parts.aliases[baseModel]! : baseModel;
  if (meant.startsWith("tinker://")) {
    const checkpoint = readable(parts, meant, owner);
    return { baseModel: checkpoint.baseModel, checkpoint, sessionId: null, samplerId: null };
  }
  const name = parts.bases.check(meant);
  return { baseModel: name, checkpoint: null, sessionId: null, samplerId: null };
}

function samplerTarget(parts: TargetParts, samplerId: string, owner: string): SampleTarget {
  const sampler = parts.store.samplers.get(samplerId);
  if (sampler?.owner !== owner) throw notFound(`sampling session ${samplerId}`);
  const { sessionId, baseModel, modelPath } = sampler;
  const checkpoint = modelPath === null ? null : readable(parts, modelPath, owner);
  return { baseModel, checkpoint, sessionId, samplerId };
}

/** The checkpoint at a path; those that have an alias are there for every caller. */
function readable(parts: TargetParts, modelPath: string, owner: string): CheckpointRecord {
  return Object.values(parts.aliases).includes(modelPath)
    ? parts.checkpoints.existing(modelPath)
    : parts.checkpoints.readable(modelPath, [owner]);
}

/** Finds a checkpoint to sample from; a base model may be named too but must be the right one. */
function pathTarget(
  parts: TargetParts,
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
