import { mkdir, statfs } from "node:fs/promises";
import path from "node:path";
import { HubError } from "../errors.js";
import { readJsonObject } from "../files/json.js";
import { fileSize } from "../files/paths.js";
import { parseWeightIndex, weightIndexFile } from "../files/weight-index.js";
import type { RepositoryCache, RepositoryKind } from "./cache.js";
import { HubClient } from "./client.js";
import { downloadBlob, type RemoteFile } from "./download.js";
import { smallFiles, weightFile, type HubFiles } from "./files.js";
import { ProgressCounter, type DownloadProgress } from "./progress.js";
import type { RetryPolicy } from "./transient-error.js";
import type { HubSettings } from "./settings.js";

/** Options of a download. */
export interface FetchSnapshotOptions {
  readonly onProgress?: (progress: DownloadProgress) => void;
  readonly signal?: AbortSignal;
  /** Timeout without data on a connection, in milliseconds. @default 30000 */
  readonly stallTimeoutMs?: number;
  /** @default 6 attempts without progress, 1 s to 30 s apart */
  readonly retryPolicy?: RetryPolicy;
}

const defaultRetryPolicy: RetryPolicy = { maxAttempts: 6, firstDelayMs: 1000, maxDelayMs: 30_000 };

/** Downloads the needed files of a revision into the cache and returns its commit. */
export async function fetchSnapshot(
  settings: HubSettings,
  cache: RepositoryCache,
  wanted: { id: string; revision: string; files: HubFiles },
  options: FetchSnapshotOptions,
): Promise<string> {
  const { id, revision, files } = wanted;
  const client = openClient(settings, id, options);
  const progress = new ProgressCounter(options.onProgress);
  const { commit, files: available } = await client.repository(revision);
  const fetchFiles = (names: readonly string[]): Promise<void> =>
    fetchIntoCache({ client, cache, commit, progress }, names, options);

  const weights = files === "model" ? weightFile(id, available) : null;
  if (!available.includes("tokenizer.json")) await missTokenizer(cache, commit, wanted);
  // Small files first: a snapshot that has its weights has everything.
  await fetchFiles(smallFiles(available, files));
  if (weights !== null) await fetchFiles([weights]);
  if (weights === weightIndexFile) await fetchFiles(await shardsOf(cache.snapshot(commit)));
  await cache.rememberCommit(revision, commit);
  return commit;
}

/** A client with the settings of a download. */
export function openClient(
  settings: HubSettings,
  id: string,
  options: FetchSnapshotOptions,
  kind: RepositoryKind = "model",
): HubClient {
  const { retryPolicy = defaultRetryPolicy, stallTimeoutMs = 30_000, signal } = options;
  return new HubClient(settings, id, { kind, retryPolicy, stallTimeoutMs, signal });
}

/** Downloads files of a commit into the cache, except those already there. */
export async function fetchIntoCache(
  place: { client: HubClient; cache: RepositoryCache; commit: string; progress: ProgressCounter },
  names: readonly string[],
  options: FetchSnapshotOptions,
): Promise<void> {
  const { client, cache, commit, progress } = place;
  const { retryPolicy = defaultRetryPolicy, signal } = options;
  const remote: RemoteFile[] = [];
  for (const name of names) remote.push(await client.file(commit, name));
  progress.expect(remote);
  await refuseFullDisk(cache, remote);
  for (const file of remote) {
    const blob = cache.blob(file.etag);
    if ((await fileSize(blob)) !== file.sizeBytes) {
      await downloadBlob(file, blob, {
        retryPolicy,
        signal,
        request: (fromByte) => client.contents(file, fromByte),
        onBytes: (doneBytes) => progress.report(file, doneBytes),
      });
    }
    progress.report(file, file.sizeBytes);
    await cache.addToSnapshot(commit, file.name, file.etag);
  }
}

async function missTokenizer(
  cache: RepositoryCache,
  commit: string,
  wanted: { id: string; files: HubFiles },
): Promise<void> {
  if (wanted.files === "model") return cache.rememberAbsent(commit, "tokenizer.json");
  throw new HubError("tokenizer_missing", `${wanted.id} has no tokenizer.json.`);
}

async function shardsOf(snapshot: string): Promise<string[]> {
  const index = path.join(snapshot, weightIndexFile);
  return [...new Set(parseWeightIndex(index, await readJsonObject(index)).values())];
}

async function refuseFullDisk(cache: RepositoryCache, files: readonly RemoteFile[]): Promise<void> {
  let neededBytes = 0;
  for (const { etag, sizeBytes } of files) {
    const blob = cache.blob(etag);
    const doneBytes = (await fileSize(blob)) ?? (await fileSize(`${blob}.incomplete`)) ?? 0;
    neededBytes += Math.max(sizeBytes - doneBytes, 0);
  }
  await mkdir(cache.folder, { recursive: true });
  const { bavail, bsize } = await statfs(cache.folder);
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes) return;
  throw new HubError(
    "disk_full",
    `The download needs ${inGigabytes(neededBytes)}, but ${cache.folder} has ` +
      `${inGigabytes(freeBytes)} left. Make room, or set HF_HOME to a larger disk.`,
  );
}

function inGigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
