export { downloadAdapter, type DownloadOptions } from "./download.js";
export { mergeAdapter, type MergeOptions } from "./merge.js";
export { modelCard, type ModelCardOptions } from "./model-card.js";
export { exportPeft, type PeftOptions, type PeftResult } from "./peft.js";
export { WeightsError } from "./weights-error.js";
