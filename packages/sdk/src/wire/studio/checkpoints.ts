import type { StudioNumber, StudioTime } from "./values.js";

/** A checkpoint with its metadata. */
export interface StudioCheckpoint {
  /** `tinker://RUN/weights/NAME`. */
  readonly path: string;
  /** The model that it was saved from. */
  readonly model: string;
  /** The run it is shown with. */
  readonly run: string;
  /** The name of that run. */
  readonly runName: string;
  /** Its name. */
  readonly name: string;
  /** `training` has the optimizer state; `sampler` is for sampling only. */
  readonly kind: "training" | "sampler";
  /** The base model. */
  readonly baseModel: string;
  /** Rank of the adapter. */
  readonly rank: number;
  /** Optimizer steps before it. */
  readonly step: number | null;
  /** The nll of the last pass before it. */
  readonly nll: StudioNumber | null;
  /** Size of its files. */
  readonly sizeBytes: number;
  /** Whether everyone may use it. */
  readonly isPublic: boolean;
  /** When it was saved. */
  readonly createdAt: StudioTime;
  /** When it will be deleted; null for never. */
  readonly expiresAt: StudioTime | null;
  /** The checkpoint that its model was created from. */
  readonly parent: string | null;
  /** Models and samplers that use it now. */
  readonly usedBy: readonly string[];
}

/** `GET checkpoints?run`. */
export interface StudioCheckpoints {
  /** Newest first. */
  readonly checkpoints: readonly StudioCheckpoint[];
  /** Bytes of all of them. */
  readonly totalBytes: number;
}
