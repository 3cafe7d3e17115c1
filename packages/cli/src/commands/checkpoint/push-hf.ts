import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { defineCommand } from "../../command.js";
import { downloadCheckpoint } from "../../connect/download-checkpoint.js";
import { withService } from "../../connect/with-service.js";
import { findLogin } from "../../hub-upload/hub-login.js";
import { prepareFolder } from "../../hub-upload/prepare-folder.js";
import { pushFolder } from "../../hub-upload/push-folder.js";
import { explainHub } from "../../hub-upload/hub-error.js";
import { branchOf, defaultRepo, withOwner } from "../../hub-upload/repo-name.js";
import { formatBoolean } from "../../output/formats.js";
import { checkpointArguments, parseCheckpointPath } from "../../parse/checkpoint-path.js";

/** `checkpoint push-hf` */
export const command = defineCommand({
  summary: "Uploads a checkpoint to the Hugging Face hub as a PEFT adapter.",
  details: ["Needs a Hugging Face login: HF_TOKEN, --hf-token or 'hf auth login'."],
  options: {
    repo: {
      type: "string",
      short: "r",
      placeholder: "REPO",
      description: "The repository, OWNER/NAME or NAME; made from model and run by default",
    },
    public: { type: "flag", description: "Makes a new repository public" },
    revision: { type: "string", description: "The branch; it is made where it does not exist" },
    commitMessage: { type: "string", description: "The title of the commit" },
    createPr: { type: "flag", description: "Opens a pull request" },
    allowPattern: { type: "string", multiple: true, description: "Uploads only matching files" },
    ignorePattern: { type: "string", multiple: true, description: "Leaves matching files out" },
    noModelCard: { type: "flag", description: "Writes no README.md" },
    hfToken: { type: "string", placeholder: "TOKEN", description: "The token of the hub" },
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
        // The adapter is whole without it, so a server that cannot tell is no obstacle.
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
