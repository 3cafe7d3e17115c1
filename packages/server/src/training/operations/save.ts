import { decodeJson } from "tinker-ts/wire";
import { checkName, pathOf } from "../../checkpoints/checkpoint-names.js";
import { badRequest } from "../../errors/api-error.js";
import type { CheckpointKind, CheckpointRecord } from "../../store/checkpoints-table.js";
import type { Checkpoints } from "../../checkpoints/checkpoints.js";
import type { Logger } from "../../log/logger.js";
import type { SamplerWeights } from "../../engine-host/sampler-weights.js";
import type { Store } from "../../store/store.js";
import type { Clock } from "../../time/clock.js";
import type { LiveModel } from "../live-models.js";
import { jsonResult, type Done, type OperationInput, type TrainingOperation } from "./operation.js";

/** What saves work with. */
export interface SaveParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly checkpoints: Checkpoints;
  readonly weights: SamplerWeights;
}

/** Saves of weights to continue from and to sample from. */
export function saveOperations(
  parts: SaveParts,
): Record<"save_weights" | "save_weights_for_sampler", TrainingOperation> {
  return {
    save_weights: { resource: "disk", run: (input) => saveWeights(parts, input) },
    save_weights_for_sampler: { resource: "disk", run: (input) => saveForSampler(parts, input) },
  };
}

/** Saves weights and optimizer state under a name. */
async function saveWeights(parts: SaveParts, input: OperationInput): Promise<Done> {
  const request = decodeJson("SaveWeightsRequest", await input.bytes());
  const { live } = input;
  const save = await writeCheckpoint(parts, live, input.request.requestId, {
    type: "training",
    name: checkName(request.path ?? defaultName(input)),
    ttlSeconds: request.ttlSeconds,
    userMetadata: request.userMetadata,
    isEphemeral: false,
    isOverwriteAllowed: request.overwrite,
  });
  return {
    ...save,
    ...jsonResult("SaveWeightsResponse", { path: pathOf(save.record), type: "save_weights" }),
  };
}

/** Saves weights to sample from: under a name, or for one sampling session. */
async function saveForSampler(parts: SaveParts, input: OperationInput): Promise<Done> {
  const request = decodeJson("SaveWeightsForSamplerRequest", await input.bytes());
  const { live } = input;
  const { samplingSessionSeqId: samplerSeq } = request;
  const isEphemeral = request.path === null && samplerSeq !== null;
  const name = isEphemeral ? `ephemeral-${samplerSeq}` : (request.path ?? defaultName(input));
  const save = await writeCheckpoint(parts, live, input.request.requestId, {
    type: "sampler",
    name: checkName(name),
    ttlSeconds: request.ttlSeconds,
    userMetadata: request.userMetadata,
    isEphemeral,
    isOverwriteAllowed: false,
  });
  const frozen = await live.adapter.snapshot();
  const samplerId = isEphemeral ? `${live.model.sessionId}:sample:${samplerSeq}` : null;
  return {
    ...save,
    ...jsonResult("SaveWeightsForSamplerResponseInternal", {
      type: "save_weights_for_sampler",
      ...(samplerId === null ? { path: pathOf(save.record) } : { samplingSessionId: samplerId }),
    }),
    write: () => {
      save.write();
      if (samplerId !== null) addSampler(parts, samplerId, save.record);
    },
    afterCommit: async () => {
      parts.weights.put(save.record.folder, frozen);
      await save.afterCommit();
    },
    undo: async () => {
      await frozen.release();
      await save.undo();
    },
  };
}

/** Saves weights that no request has asked for. */
export function saveWithoutRequest(
  parts: SaveParts,
  live: LiveModel,
  save: Pick<SaveOptions, "type" | "name">,
) {
  return writeCheckpoint(parts, live, `studio:${live.model.modelId}:${save.name}`, {
    ...save,
    ttlSeconds: null,
    userMetadata: null,
    isEphemeral: false,
    isOverwriteAllowed: false,
  });
}

interface SaveOptions {
  readonly type: CheckpointKind;
  readonly name: string;
  readonly ttlSeconds: number | null;
  readonly userMetadata: CheckpointRecord["userMetadata"];
  readonly isEphemeral: boolean;
  readonly isOverwriteAllowed: boolean;
}

/** Writes the files; the checkpoint exists once its record is committed. */
async function writeCheckpoint(
  { store, clock, logger, checkpoints }: SaveParts,
  live: LiveModel,
  requestId: string,
  options: SaveOptions,
) {
  const { type, name, isEphemeral } = options;
  const { modelId, sessionId, owner, baseModel, lora } = live.model;
  checkTtl(options.ttlSeconds);
  const previous = store.checkpoints.get(modelId, type, name);
  if (previous && !options.isOverwriteAllowed) throw nameTaken(previous);
  if (!previous && !isEphemeral) checkpoints.checkQuota(owner);
  const hasOptimizer = type === "training";
  const state = await live.adapter.exportState({ optimizer: hasOptimizer });
  const written = await checkpoints.folders.write(
    { lora, baseModel, state },
    { of: pathOf({ runId: modelId, type, name }), request: requestId },
  );
  const now = clock.now();
  const record: CheckpointRecord = {
    ...written,
    runId: modelId,
    type,
    name,
    owner,
    sessionId,
    baseModel,
    lora,
    hasOptimizer,
    userMetadata: options.userMetadata,
    isPublic: false,
    isEphemeral,
    createdAt: now,
    usedAt: now,
    expiresAt: options.ttlSeconds === null ? null : now + options.ttlSeconds * 1000,
    deletedAt: null,
  };
  return {
    record,
    usage: [{ kind: "checkpoint", amount: 1 }] as const,
    change: "none" as const,
    ...(isEphemeral ? {} : { update: { mark: savedMark(pathOf(record)) } }),
    write: () => {
      if (previous) store.checkpoints.markDeleted(previous.folder, now);
      store.checkpoints.insert(record);
      if (isEphemeral) return;
      const tinkerPath = pathOf(record);
      store.audit.add({ at: now, owner, event: "checkpoint.created", modelId, tinkerPath });
    },
    afterCommit: async () => {
      if (previous) await checkpoints.removeFiles(previous.folder);
      if (!isEphemeral) logger.info("checkpoint saved", { path: pathOf(record) });
    },
    undo: () => checkpoints.folders.remove([written.folder]),
  };
}

function savedMark(tinkerPath: string) {
  return { kind: "checkpoint", text: `checkpoint ${tinkerPath} saved`, subject: tinkerPath };
}

function addSampler(
  { store, clock }: SaveParts,
  samplerId: string,
  record: CheckpointRecord,
): void {
  if (store.samplers.get(samplerId)) {
    throw badRequest("sampling_session_seq_id", `sampling session ${samplerId} exists already`);
  }
  store.samplers.insert({
    samplerId,
    sessionId: record.sessionId,
    owner: record.owner,
    baseModel: record.baseModel,
    modelPath: pathOf(record),
    createdAt: clock.now(),
  });
}

function defaultName({ request, live }: OperationInput): string {
  return String(request.seq ?? live.applied).padStart(6, "0");
}

function checkTtl(ttlSeconds: number | null): void {
  if (ttlSeconds !== null && ttlSeconds <= 0) {
    throw badRequest("ttl_seconds", `must be above 0, got ${ttlSeconds}; leave it out to keep it`);
  }
}

function nameTaken(previous: CheckpointRecord) {
  const suggestion =
    previous.type === "training" ? "choose another name or set overwrite" : "choose another name";
  return badRequest("path", `checkpoint ${pathOf(previous)} exists already; ${suggestion}`);
}
