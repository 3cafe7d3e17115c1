import type { CheckpointRecord } from "../store/checkpoints-table.js";

/** The weights a sample request is addressed to. */
export interface SampleTarget {
  readonly baseModel: string;
  /** null for the bare base model. */
  readonly checkpoint: CheckpointRecord | null;
  readonly sessionId: string | null;
  readonly samplerId: string | null;
}
