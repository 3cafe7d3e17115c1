import path from "node:path";
import { defineCommand } from "../../command.js";
import { downloadCheckpoint } from "../../connect/download-checkpoint.js";
import { withService } from "../../connect/with-service.js";
import { formatSize } from "../../output/formats.js";
import { checkpointArguments, parseCheckpointPath } from "../../parse/checkpoint-path.js";

/** `checkpoint download` */
export const command = defineCommand({
  summary: "Download a checkpoint and unpack it into its own folder.",
  details: [
    "The folder is named after the checkpoint's path and made in --output or the current folder.",
  ],
  options: {
    output: { type: "string", short: "o", placeholder: "DIR", description: "Parent of the folder" },
    force: { type: "flag", description: "Replace an existing folder" },
  },
  arguments: checkpointArguments,
  async run(context, { arguments: { path: checkpoint }, options }) {
    parseCheckpointPath(checkpoint);
    const parent = path.resolve(context.terminal.cwd, options.output ?? ".");
    const directory = path.join(parent, folderName(checkpoint));
    const { archiveBytes } = await withService(context, (open) =>
      downloadCheckpoint(context, open, checkpoint, { directory, overwrite: options.force }),
    );
    context.output.result({
      json: () => ({
        checkpoint_path: checkpoint,
        destination: directory,
        file_size_bytes: archiveBytes,
      }),
      table: () => ({
        title: `Checkpoint Download: ${checkpoint}`,
        headers: ["Property", "Value"],
        rows: [
          ["Checkpoint Path", checkpoint],
          ["Archive Size", formatSize(archiveBytes)],
          ["Extracted to", directory],
        ],
      }),
    });
  },
});

/** Colons are for drives on Windows, so they cannot stay there. */
function folderName(checkpoint: string): string {
  const name = checkpoint.slice("tinker://".length).replaceAll("/", "_");
  return process.platform === "win32" ? name.replaceAll(":", "_") : name;
}
