import { openAsBlob } from "node:fs";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { CliError } from "../errors/cli-error.js";
import type { Progress } from "../output/progress.js";
import { matchesAny } from "./file-patterns.js";
import type { HubLogin } from "./hub-login.js";

/** What is uploaded, where to, and how. */
export interface PushOptions {
  readonly login: HubLogin;
  readonly folder: string;
  /** OWNER/NAME. */
  readonly repo: string;
  readonly revision: string | undefined;
  readonly isPublic: boolean;
  readonly opensPullRequest: boolean;
  readonly commitMessage: string;
  readonly allowPatterns: readonly string[];
  readonly ignorePatterns: readonly string[];
  readonly checkpointPath: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** Uploads a folder as one commit. */
export async function pushFolder(options: PushOptions): Promise<void> {
  const hub = await import("@huggingface/hub");
  const { login, revision, signal, progress } = options;
  const repo = { type: "model", name: options.repo } as const;
  const visibility = options.isPublic ? "public" : "private";
  await hub.createRepo({ repo, visibility, ...login }).catch(ignoreConflict);
  await refuseForeignCard(options);
  if (revision !== undefined && !options.opensPullRequest) {
    await hub.createBranch({ repo, branch: revision, overwrite: true, ...login });
  }
  signal.throwIfAborted();
  const steps = hub.commitIter({
    repo,
    ...login,
    title: options.commitMessage,
    operations: await operations(options),
    isPullRequest: options.opensPullRequest,
    abortSignal: signal,
    ...(revision === undefined ? {} : { branch: revision }),
  });
  for await (const step of steps) {
    if (step.event === "fileProgress") {
      progress.update(step.progress, 1, `${step.state} ${step.path}`);
    }
  }
}

async function operations({ folder, allowPatterns, ignorePatterns }: PushOptions) {
  // The marker is for tools of this API, so it is uploaded only when files are selected by name.
  const ignored =
    allowPatterns.length > 0 ? ignorePatterns : [...ignorePatterns, "checkpoint_complete"];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .map((file) => file.split(path.sep).join("/"))
    .filter((file) => allowPatterns.length === 0 || matchesAny(file, allowPatterns))
    .filter((file) => !matchesAny(file, ignored));
  if (files.length === 0) throw new CliError("No file matches the patterns.");
  return Promise.all(
    files.map(async (file) => ({
      operation: "addOrUpdate" as const,
      path: file,
      content: await openAsBlob(path.join(folder, file)),
    })),
  );
}

/** A repository that holds another checkpoint is not overwritten. */
async function refuseForeignCard(options: PushOptions): Promise<void> {
  const { login, repo, revision, checkpointPath, signal } = options;
  const { hubUrl, accessToken } = login;
  const headers = { authorization: `Bearer ${accessToken}` };
  for (const branch of new Set(["main", revision ?? "main"])) {
    const url = `${hubUrl}/${repo}/resolve/${encodeURIComponent(branch)}/README.md`;
    const response = await fetch(url, { headers, signal });
    const card = response.ok ? await response.text() : "";
    const other = (card.match(/tinker:\/\/[^\s`"')\]]+/g) ?? []).find(
      (found) => found !== checkpointPath,
    );
    if (other === undefined) continue;
    throw new CliError(
      `${repo} holds another checkpoint: ${other}`,
      "Choose another --repo, or delete that one.",
    );
  }
}

function ignoreConflict(error: unknown): void {
  const isThere = error instanceof Error && "statusCode" in error && error.statusCode === 409;
  if (!isThere) throw error;
}
