import type { DownloadProgress } from "../checkpoints/download-file.js";
import type { UploadProgress } from "../checkpoints/upload-checkpoint.js";
import type { OperationOptions } from "../futures/operation.js";

/** Whose things to look at: one's own, or everything one may see. */
export type AccessScope = "owned" | "accessible";

/** Whose things to look at. */
export interface ScopeOptions extends OperationOptions {
  /**
   * Whose.
   * @default "owned"
   */
  readonly accessScope?: AccessScope | undefined;
}

/** Which part of a list. */
export interface PageOptions extends OperationOptions {
  /** Most items to return; the server has a default of its own and an upper bound. */
  readonly limit?: number | undefined;
  /**
   * Items to leave out at the start.
   * @default 0
   */
  readonly offset?: number | undefined;
}

/** Which training runs. */
export interface ListTrainingRunsOptions extends PageOptions, ScopeOptions {
  /** Runs of one project only. */
  readonly projectId?: string | undefined;
}

/** Which entries of the audit log. */
export interface AuditLogOptions extends OperationOptions {
  /**
   * Everything, or what happened to checkpoints only.
   * @default "all"
   */
  readonly eventType?: "all" | "checkpoints" | undefined;
  /** A UTC day, `YYYY-MM-DD`; today by default. */
  readonly day?: string | undefined;
}

/** The hours whose usage is asked for. */
export interface BillingUsageOptions extends OperationOptions {
  /** Inclusive. */
  readonly startingOn: Date | string;
  /** Exclusive; at most 14 days later. */
  readonly endingBefore: Date | string;
}

/** Where a downloaded checkpoint goes. */
export interface DownloadCheckpointOptions extends OperationOptions {
  /** The folder to make; its parents are made too. */
  readonly directory: string;
  /**
   * Replaces a folder that exists.
   * @default false
   */
  readonly overwrite?: boolean | undefined;
  /** Hears of every piece that arrived. */
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined;
}

/** Where a downloaded trace goes. */
export interface DownloadTraceOptions extends OperationOptions {
  /** The file to write; its folder is made too. */
  readonly file: string;
  /** Hears of every piece that arrived. */
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined;
}

/** What is uploaded as a checkpoint. */
export interface UploadCheckpointOptions extends OperationOptions {
  /** A folder with `adapter_config.json` and `adapter_model.safetensors`. */
  readonly directory: string;
  /** Hears of every piece that was sent. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined;
}
