import path from "node:path";
import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { formatSize } from "../../output/formats.js";

/** `session export-trace` */
export const command = defineCommand({
  summary: "Download the timeline of a session, for Perfetto.",
  options: {
    output: {
      type: "string",
      short: "o",
      placeholder: "FILE",
      description: "File to write; SESSION_ID.pftrace by default",
    },
    urlOnly: { type: "flag", description: "Print the address and download nothing" },
  },
  arguments: { sessionId: { values: ["sessions"], description: "Id of the session" } },
  async run(context, { arguments: { sessionId }, options }) {
    const { output, terminal } = context;
    output.note("Exporting the trace; this can take a while.");
    await withService(context, async (open) => {
      if (options.urlOnly) {
        const url = await open.rest.exportSessionTrace(sessionId, open.bounds);
        if (output.isJson) output.json({ session_id: sessionId, url });
        else output.line(url);
        return;
      }
      const progress = output.progress("Downloading");
      const { file, sizeBytes } = await open.rest
        .downloadSessionTrace(sessionId, {
          file: path.resolve(terminal.cwd, options.output ?? defaultName(sessionId)),
          onProgress: ({ receivedBytes, totalBytes }) => progress.update(receivedBytes, totalBytes),
          ...open.bounds,
        })
        .finally(() => progress.end());
      output.result({
        json: () => ({ session_id: sessionId, destination: file, file_size_bytes: sizeBytes }),
        table: () => ({
          title: `Trace Export: ${sessionId}`,
          headers: ["Property", "Value"],
          rows: [
            ["Session ID", sessionId],
            ["Saved to", file],
            ["Size", formatSize(sizeBytes)],
          ],
        }),
      });
    });
  },
});

function defaultName(sessionId: string): string {
  return `${sessionId.replace(/[^\w.-]/g, "_")}.pftrace`;
}
