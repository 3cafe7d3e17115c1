import type { HubLogin } from "./hub-login.js";

/** A repository with the name of its owner, who is the one who is logged in if none is given. */
export async function withOwner(repo: string, login: HubLogin): Promise<string> {
  if (repo.includes("/")) return repo;
  const { whoAmI } = await import("@huggingface/hub");
  return `${(await whoAmI(login)).name}/${repo}`;
}

/** The repository that a checkpoint goes to when none is named. */
export function defaultRepo(baseModel: string | null, runId: string): string {
  const short = baseModel?.split("/").at(-1) ?? "adapter";
  return sanitize(`tinker-${short}-${runId}`);
}

/** The branch that a checkpoint goes to in such a repository. */
export function branchOf(checkpointId: string): string {
  return checkpointId.replaceAll("/", "-");
}

function sanitize(name: string): string {
  return name
    .replace(/[^\p{L}\p{N}_.-]/gu, "-")
    .replace(/-{2,}/g, "-")
    .replace(/^-+|-+$/g, "");
}
