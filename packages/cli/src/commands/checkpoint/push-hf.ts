import { defineCommand } from "../../command.js";
import { downloadCheckpoint } from "../../connect/download-checkpoint.js";
import { withService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { findLogin, type HubLogin } from "../../hub-upload/hub-login.js";
import { prepareFolder } from "../../hub-upload/prepare-folder.js";
import { pushFolder } from "../../hub-upload/push-folder.js";
import { formatBoolean } from "../../output/formats.js";
import { checkpointArguments, parseCheckpointPath } from "../../parse/checkpoint-path.js";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/** `checkpoint push-hf` */
export const command = defineCommand({
  summary: "Upload a checkpoint to the Hugging Face hub as a PEFT adapter.",
  details: ["Needs a Hugging Face login: HF_TOKEN, --hf-token or 'hf auth login'."],
  options: {
    repo: {
      type: "string",
      short: "r",
      placeholder: "REPO",
      description: "Repository, OWNER/NAME or NAME; by default from model and run",
    },
    public: { type: "flag", description: "Make a new repository public" },
    revision: { type: "string", description: "Branch; created if it does not exist" },
    commitMessage: { type: "string", description: "Title of the commit" },
    createPr: { type: "flag", description: "Open a pull request" },
    allowPattern: { type: "string", multiple: true, description: "Upload only matching files" },
    ignorePattern: { type: "string", multiple: true, description: "Skip matching files" },
    noModelCard: { type: "flag", description: "Write no README.md" },
    hfToken: { type: "string", placeholder: "TOKEN", description: "Token of the hub" },
  },
  arguments: checkpointArguments,
  examples: ["checkpoint push-hf tinker://RUN_ID/sampler_weights/NAME --repo my-name/my-adapter"],
  async run(context, { arguments: { path: checkpoint }, options }) {
    const { runId, checkpointId } = parseCheckpointPath(checkpoint);
    const { terminal, signal, output } = context;
    const login = await findLogin(options.hfToken, terminal.env);
    const temporary = await mkdtemp(path.join(tmpdir(), "tinker-ts-push-"));
    const folder = path.join(temporary, "adapter");
    const progress = output.progress("Uploading");
    try {
      const info = await withService(context, async (open) => {
        await downloadCheckpoint(context, open, checkpoint, {
          directory: folder,
          overwrite: false,
        });
        // Optional: the adapter is complete without it.
        return open.rest
          .getWeightsInfoByTinkerPath(checkpoint, open.bounds)
          .catch(() => ({ baseModel: null, loraRank: null }));
      });
      const { baseModel, loraRank } = info;
      const repo = await withOwner(options.repo ?? defaultRepo(baseModel, runId), login);
      const revision = options.revision ?? defaultRevision(options, checkpointId);
      const facts = { repo, revision, baseModel, loraRank, checkpointPath: checkpoint };
      await prepareFolder(folder, facts, { writesCard: !options.noModelCard });
      await pushFolder({
        login,
        folder,
        repo,
        revision,
        isPublic: options.public,
        opensPullRequest: options.createPr,
        commitMessage: options.commitMessage ?? `Upload ${checkpoint}`,
        allowPatterns: options.allowPattern,
        ignorePatterns: options.ignorePattern,
        checkpointPath: checkpoint,
        progress,
        signal,
      });
      progress.end();
      output.result({
        json: () => ({
          checkpoint_path: checkpoint,
          repo_id: repo,
          ...(options.revision === undefined ? {} : { revision: options.revision }),
          public: options.public,
        }),
        table: () => ({
          title: `Checkpoint Hub Upload: ${checkpoint}`,
          headers: ["Property", "Value"],
          rows: [
            ["Checkpoint Path", checkpoint],
            ["Repo ID", repo],
            ...(options.revision === undefined ? [] : [["Revision", options.revision]]),
            ["Public", formatBoolean(options.public)],
          ],
        }),
      });
    } catch (error) {
      throw explainHub(error);
    } finally {
      progress.end();
      await rm(temporary, { recursive: true, force: true });
    }
  },
});

/** A repository that is made for a run has a branch per checkpoint; pull requests go to the main one. */
function defaultRevision(
  options: { readonly repo: string | undefined; readonly createPr: boolean },
  checkpointId: string,
): string | undefined {
  return options.repo === undefined && !options.createPr ? branchOf(checkpointId) : undefined;
}

/** What the hub says when it refuses something, for people; other errors stay as they are. */
function explainHub(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if ("statusCode" in error) {
    const isLogin = error.statusCode === 401 || error.statusCode === 403;
    const hint = isLogin ? " Check that the token may write." : "";
    return new CliError("The hub refused the upload.", `${error.message}${hint}`, { cause: error });
  }
  if (error.message.includes("access token")) {
    return new CliError("The token of the hub is not one.", error.message, { cause: error });
  }
  return error;
}

/** A repository with the name of its owner; without one, that of the login. */
async function withOwner(repo: string, login: HubLogin): Promise<string> {
  if (repo.includes("/")) return repo;
  const { whoAmI } = await import("@huggingface/hub");
  return `${(await whoAmI(login)).name}/${repo}`;
}

/** The repository that a checkpoint goes to when none is named. */
function defaultRepo(baseModel: string | null, runId: string): string {
  const short = baseModel?.split("/").at(-1) ?? "adapter";
  return sanitize(`tinker-${short}-${runId}`);
}

/** The branch that a checkpoint goes to in such a repository. */
function branchOf(checkpointId: string): string {
  return checkpointId.replaceAll("/", "-");
}

function sanitize(name: string): string {
  return name
    .replace(/[^\p{L}\p{N}_.-]/gu, "-")
    .replace(/-{2,}/g, "-")
    .replace(/^-+|-+$/g, "");
}
