import { needed, option, type OptionsOf } from "../errors/check-options.js";
import type { DownloadProgress } from "../checkpoints/download-file.js";
import type { UploadProgress } from "../checkpoints/upload-checkpoint.js";
import { operationOptions, type OperationOptions } from "../futures/operation.js";

/** Which things to list: the caller's own, or everything the caller may see. */
export type AccessScope = "owned" | "accessible";

/** The fields of `ScopeOptions`. */
export const scopeOptions = {
  /**
   * Which ones.
   * @default "owned"
   */
  accessScope: option<AccessScope>(),
};

/** Which things to list. */
export interface ScopeOptions extends OperationOptions, OptionsOf<typeof scopeOptions> {}

/** The fields of `PageOptions`. */
export const pageOptions = {
  /** Most items to return; the server has a default of its own and an upper bound. */
  limit: option<number>(),
  /**
   * Items to leave out at the start.
   * @default 0
   */
  offset: option<number>(),
};

/** Which part of a list. */
export interface PageOptions extends OperationOptions, OptionsOf<typeof pageOptions> {}

/** The fields of `ListTrainingRunsOptions`. */
export const listTrainingRunsOptions = {
  /** Runs of one project only. */
  projectId: option<string>(),
};

/** Which training runs. */
export interface ListTrainingRunsOptions
  extends PageOptions, ScopeOptions, OptionsOf<typeof listTrainingRunsOptions> {}

/** The fields of `AuditLogOptions`. */
export const auditLogOptions = {
  /**
   * Everything, or what happened to things of one kind.
   * @default "all"
   */
  eventType: option<"all" | "checkpoints" | "projects" | "teams" | "organizations">(),
  /** A UTC day, `YYYY-MM-DD`; today by default. */
  day: option<string>(),
};

/** Which entries of the audit log. */
export interface AuditLogOptions extends OperationOptions, OptionsOf<typeof auditLogOptions> {}

/** The fields of `BillingUsageOptions`. */
export const billingUsageOptions = {
  /** Inclusive. */
  startingOn: needed<Date | string>(),
  /** Exclusive; at most 14 days later. */
  endingBefore: needed<Date | string>(),
};

/** The hours of a usage request. */
export interface BillingUsageOptions
  extends OperationOptions, OptionsOf<typeof billingUsageOptions> {}

/** The fields of `DownloadCheckpointOptions`. */
export const downloadCheckpointOptions = {
  /** The folder to make; its parents are made too. */
  directory: needed<string>(),
  /**
   * Replaces a folder that exists.
   * @default false
   */
  overwrite: option<boolean>(),
  /** Called with every piece that arrived. */
  onProgress: option<(progress: DownloadProgress) => void>(),
};

/** Where a downloaded checkpoint goes. */
export interface DownloadCheckpointOptions
  extends OperationOptions, OptionsOf<typeof downloadCheckpointOptions> {}

/** The fields of `DownloadTraceOptions`. */
export const downloadTraceOptions = {
  /** The file to write; its folder is made too. */
  file: needed<string>(),
  /** Called with every piece that arrived. */
  onProgress: option<(progress: DownloadProgress) => void>(),
};

/** Where a downloaded trace goes. */
export interface DownloadTraceOptions
  extends OperationOptions, OptionsOf<typeof downloadTraceOptions> {}

/** The fields of `UploadCheckpointOptions`. */
export const uploadCheckpointOptions = {
  /** A folder with `adapter_config.json` and `adapter_model.safetensors`. */
  directory: needed<string>(),
  /** Called with every piece that was sent. */
  onProgress: option<(progress: UploadProgress) => void>(),
};

/** What is uploaded as a checkpoint. */
export interface UploadCheckpointOptions
  extends OperationOptions, OptionsOf<typeof uploadCheckpointOptions> {}

/** The options of every method that takes some. */
export const restOptions = [
  operationOptions,
  pageOptions,
  scopeOptions,
  listTrainingRunsOptions,
  auditLogOptions,
  billingUsageOptions,
  downloadCheckpointOptions,
  downloadTraceOptions,
  uploadCheckpointOptions,
];
