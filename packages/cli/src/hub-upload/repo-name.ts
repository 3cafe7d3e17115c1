/** The repository that a checkpoint goes to when none is named. */
export function defaultRepo(baseModel: string | null, runId: string): string {
  const short = baseModel?.split("/").at(-1) ?? "adapter";
  return sanitize(`tinker-${short}-${runId}`);
}

/** The branch that a checkpoint goes to in such a repository. */
export function defaultRevision(checkpointId: string): string {
  return checkpointId.replaceAll("/", "-");
}

function sanitize(name: string): string {
  return name
    .replace(/[^\p{L}\p{N}_.-]/gu, "-")
    .replace(/-{2,}/g, "-")
    .replace(/^-+|-+$/g, "");
}
