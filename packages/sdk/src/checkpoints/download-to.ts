import path from "node:path";
import type { Connection } from "../session/connection.js";
import { downloadFile, type DownloadProgress } from "./download-file.js";

/** A file on disk. */
export interface DownloadedFile {
  /** Its absolute path. */
  readonly file: string;
  /** Its size. */
  readonly sizeBytes: number;
}

/** Downloads what is behind a signed address to a file, which appears as a whole or not at all. */
export async function downloadTo(
  connection: Connection,
  getUrl: () => Promise<string>,
  target: { readonly file: string; readonly onProgress: (progress: DownloadProgress) => void },
  signal: AbortSignal,
): Promise<DownloadedFile> {
  const file = path.resolve(target.file);
  const { onProgress } = target;
  const { writeFileAtomically } = await import("@tinker-ts/hub/files");
  let sizeBytes = 0;
  await writeFileAtomically(file, async (part) => {
    sizeBytes = await downloadFile({ connection, getUrl, file: part, onProgress, signal });
  });
  return { file, sizeBytes };
}
