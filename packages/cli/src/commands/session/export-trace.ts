import { mkdir, rm } from "node:fs/promises";
import { createWriteStream } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { defineCommand, type CommandContext } from "../../command.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { formatSize } from "../../output/formats.js";

/** `session export-trace` */
export const command = defineCommand({
  summary: "Downloads the timeline of a session, to be opened in Perfetto.",
  options: {
    output: {
      type: "string",
      short: "o",
      placeholder: "FILE",
      description: "Where to save it; SESSION_ID.pftrace by default",
    },
    urlOnly: { type: "flag", description: "Prints the address and downloads nothing" },
  },
  arguments: { sessionId: { description: "The id of the session" } },
  async run(context, { arguments: { sessionId }, options }) {
    const { output, terminal } = context;
    output.note("Exporting the trace; this can take a while.");
    await withService(context, async (open) => {
      const url = await open.rest.exportSessionTrace(sessionId, open.bounds);
      if (options.urlOnly) {
        if (output.isJson) output.json({ session_id: sessionId, url });
        else output.line(url);
        return;
      }
      const file = path.resolve(terminal.cwd, options.output ?? defaultName(sessionId));
      const sizeBytes = await save(context, open, url, file);
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

async function save(
  { signal, output }: CommandContext,
  { fetchUrl }: OpenService,
  url: string,
  file: string,
): Promise<number> {
  const response = await fetchUrl(url, signal);
  if (!response.ok || !response.body) {
    throw new CliError(
      "The trace could not be downloaded.",
      `The server answered ${response.status}.`,
    );
  }
  await mkdir(path.dirname(file), { recursive: true });
  const progress = output.progress("Downloading");
  let sizeBytes = 0;
  const body = Readable.fromWeb(response.body as ReadableStream<Uint8Array>);
  body.on("data", (part: Uint8Array) => progress.update((sizeBytes += part.length), null));
  try {
    await pipeline(body, createWriteStream(file), { signal });
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    progress.end();
  }
  return sizeBytes;
}
