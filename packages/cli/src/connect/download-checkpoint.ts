import { stat } from "node:fs/promises";
import type { DownloadedCheckpoint } from "tinker-ts";
import type { CommandContext } from "../command.js";
import { CliError } from "../errors/cli-error.js";
import { formatSize } from "../output/formats.js";
import type { OpenService } from "./with-service.js";

/** Downloads a checkpoint with a progress bar. */
export async function downloadCheckpoint(
  { output, signal }: CommandContext,
  { rest }: OpenService,
  checkpoint: string,
  target: { readonly directory: string; readonly overwrite: boolean },
): Promise<DownloadedCheckpoint> {
  if (!target.overwrite && (await exists(target.directory))) {
    throw new CliError(
      `Target directory already exists: ${target.directory}`,
      "Use --force to replace it.",
    );
  }
  const progress = output.progress("Downloading");
  try {
    return await rest.downloadCheckpoint(checkpoint, {
      ...target,
      signal,
      onProgress: ({ receivedBytes, totalBytes }) =>
        progress.update(receivedBytes, totalBytes, formatSize(receivedBytes)),
    });
  } finally {
    progress.end();
  }
}

function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
