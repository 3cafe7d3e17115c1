import type { DownloadProgress, ServiceClient } from "tinker-ts";
import { AdapterFolder } from "./adapter.js";
import { asWeightsError } from "./weights-error.js";

/** Which weights to download, and where to. */
export interface DownloadOptions {
  readonly service: ServiceClient;
  /** `tinker://RUN/weights/NAME` or `tinker://RUN/sampler_weights/NAME`. */
  readonly path: string;
  /** The folder to make; it appears as a whole or not at all. */
  readonly output: string;
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Downloads the adapter of a checkpoint and looks into it, so that what does not fit is known here. */
export async function downloadAdapter(options: DownloadOptions): Promise<{
  readonly folder: string;
  readonly rank: number;
  readonly alpha: number;
  /** Modules that are adapted. */
  readonly modules: readonly string[];
}> {
  const { service, path, output, onProgress, signal } = options;
  const rest = service.createRestClient();
  const { directory } = await rest.downloadCheckpoint(path, {
    directory: output,
    onProgress,
    signal,
  });
  const adapter = await asWeightsError(() => AdapterFolder.open(directory));
  try {
    const { rank, alpha, pairs } = adapter;
    return { folder: directory, rank, alpha, modules: pairs.map((pair) => pair.path) };
  } finally {
    await adapter.close();
  }
}
