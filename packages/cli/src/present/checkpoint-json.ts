import type { Checkpoint, TrainingRun } from "tinker-ts";
import { formatDate } from "../output/formats.js";

/** A checkpoint as the command line prints it in JSON. */
export function checkpointJson(checkpoint: Checkpoint): Record<string, unknown> {
  return {
    checkpoint_id: checkpoint.checkpointId,
    checkpoint_type: checkpoint.checkpointType,
    time: formatDate(checkpoint.time),
    tinker_path: checkpoint.tinkerPath,
    size_bytes: checkpoint.sizeBytes,
    public: checkpoint.public,
    expires_at: checkpoint.expiresAt && formatDate(checkpoint.expiresAt),
    ...checkpoint.unknownFields,
  };
}

/** A training run as the command line prints it in JSON. */
export function trainingRunJson(run: TrainingRun): Record<string, unknown> {
  return {
    training_run_id: run.trainingRunId,
    base_model: run.baseModel,
    model_owner: run.modelOwner,
    is_lora: run.isLora,
    corrupted: run.corrupted,
    lora_rank: run.loraRank,
    last_request_time: formatDate(run.lastRequestTime),
    last_checkpoint: run.lastCheckpoint && checkpointJson(run.lastCheckpoint),
    last_sampler_checkpoint: run.lastSamplerCheckpoint && checkpointJson(run.lastSamplerCheckpoint),
    user_metadata: run.userMetadata,
    ...run.unknownFields,
  };
}
