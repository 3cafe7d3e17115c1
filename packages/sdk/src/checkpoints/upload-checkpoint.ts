import { stat } from "node:fs/promises";
import path from "node:path";
import { ArgumentError } from "../errors/argument-error.js";
import type { Connection } from "../session/connection.js";
import type { Route } from "../wire/routes.js";

/** How far an upload is. */
export interface UploadProgress {
  /** Bytes that were handed to the connection. */
  readonly sentBytes: number;
  /** Bytes of all files together; the archive around them is a little larger. */
  readonly totalBytes: number;
}

/** What is uploaded, and where it goes. */
export interface CheckpointUpload {
  /** A folder with `adapter_config.json` and `adapter_model.safetensors`. */
  readonly directory: string;
  readonly params: Readonly<Record<"trainingRunId" | "checkpointId", string>>;
  readonly onProgress: (progress: UploadProgress) => void;
}

const wantedFiles = [
  "adapter_config.json",
  "adapter_model.safetensors",
  "optimizer.safetensors",
  // With it, the server makes sure that the others are what was saved.
  "manifest.json",
];

/** An addition of this project: an adapter is uploaded to the address of its archive. */
const archiveRoute: Route = {
  method: "PUT",
  path: "/api/v1/training_runs/{trainingRunId}/checkpoints/{checkpointId}/archive",
  request: null,
  response: null,
  pool: "storage",
  retry: "outer",
  // The server checks all that was uploaded before it answers.
  timeoutMs: 300_000,
};

/** Uploads the files of a PEFT adapter as a checkpoint of a run. */
export async function uploadCheckpoint(
  connection: Connection,
  { directory, params, onProgress }: CheckpointUpload,
  signal: AbortSignal,
): Promise<void> {
  const { files, totalBytes } = await findFiles(path.resolve(directory));
  const tar = await import("tar");
  async function* archive(): AsyncGenerator<Uint8Array> {
    let sentBytes = 0;
    for await (const part of tar.c({ cwd: directory, portable: true }, files)) {
      sentBytes += part.length;
      onProgress({ sentBytes, totalBytes });
      yield part;
    }
  }
  const body = { content: archive, headers: { "content-type": "application/x-tar" } };
  await connection.api.exchangeAt(archiveRoute, "uploadCheckpoint", body, {
    params,
    signal,
    retriesConflicts: false,
    retries: { host: connection },
  });
}

async function findFiles(directory: string): Promise<{ files: string[]; totalBytes: number }> {
  const files: string[] = [];
  let totalBytes = 0;
  for (const name of wantedFiles) {
    const found = await stat(path.join(directory, name)).catch(() => undefined);
    if (!found) continue;
    files.push(name);
    totalBytes += found.size;
  }
  if (files.includes("adapter_config.json")) return { files, totalBytes };
  throw new ArgumentError("directory", `${directory} has no adapter_config.json`);
}
