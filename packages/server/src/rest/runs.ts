import type { WireInput } from "tinker-ts/wire";
import { checkpointIdOf, pathOf } from "../checkpoints/checkpoint-names.js";
import { notFound } from "../errors/api-error.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";
import type { Model, RunFilter } from "../store/models-table.js";
import type { Store } from "../store/store.js";
import type { Page } from "./query.js";

/** A page of training runs. */
export function* listRuns(
  store: Store,
  filter: RunFilter,
  { limit, offset }: Page,
): Generator<void, WireInput<"TrainingRunsResponse">, void> {
  const trainingRuns: WireInput<"TrainingRun">[] = [];
  for (const model of store.models.list(filter, limit, offset)) {
    trainingRuns.push(toTrainingRun(store, model, filter.owner));
    yield;
  }
  return {
    trainingRuns,
    cursor: { limit, offset, totalCount: store.models.count(filter) },
  };
}

/** One training run; with `accessible`, also another owner's that has a public checkpoint. */
export function getRun(
  store: Store,
  runId: string,
  owner: string,
  accessible: boolean,
): WireInput<"TrainingRun"> {
  const model = store.models.get(runId);
  const isReadable =
    model?.owner === owner ||
    (accessible && store.checkpoints.byRun(runId).some(({ isPublic }) => isPublic));
  if (!model || !isReadable) throw notFound(`training run ${runId}`);
  return toTrainingRun(store, model, owner);
}

/** A checkpoint in the form of the API. */
export function toCheckpoint(record: CheckpointRecord): WireInput<"Checkpoint"> {
  const { baseModel, userMetadata } = record;
  return {
    baseModel,
    userMetadata,
    checkpointId: checkpointIdOf(record),
    checkpointType: record.type,
    time: new Date(record.createdAt),
    tinkerPath: pathOf(record),
    sizeBytes: record.sizeBytes,
    public: record.isPublic,
    expiresAt: record.expiresAt === null ? null : new Date(record.expiresAt),
  };
}

/** A run as `reader` may see it: runs of others show public checkpoints only. */
function toTrainingRun(store: Store, model: Model, reader: string): WireInput<"TrainingRun"> {
  const checkpoints = store.checkpoints
    .byRun(model.modelId)
    .filter(({ isPublic }) => isPublic || model.owner === reader);
  const last = (type: CheckpointRecord["type"]) => {
    const found = checkpoints.find((checkpoint) => checkpoint.type === type);
    return found ? toCheckpoint(found) : null;
  };
  return {
    trainingRunId: model.modelId,
    baseModel: model.baseModel,
    modelOwner: model.owner,
    isLora: true,
    corrupted: model.state === "failed" || store.checkpoints.isDamaged(model.modelId),
    loraRank: model.lora.rank,
    lastRequestTime: new Date(model.lastRequestAt),
    lastCheckpoint: last("training"),
    lastSamplerCheckpoint: last("sampler"),
    userMetadata: toTextMetadata(model.userMetadata),
  };
}

/** Metadata of a run are strings; other values are serialized as JSON. */
export function toTextMetadata(
  metadata: Readonly<Record<string, unknown>> | null,
): Record<string, string> | null {
  if (!metadata) return null;
  return Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [
      key,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
}
