import type { CommandGroup, CommandLeaf, CommandNode } from "../command-tree.js";

/*
 * Only words and summaries are here: a command's module is loaded when the command is used, and the
 * packages that do the work when it runs. That is what makes `--help` quick.
 */
/** Every command. */
export const commandTree: CommandGroup = group(
  "Fine-tune language models: on this machine, on your own server, or on the hosted service.",
  {
    quickstart: leaf("Train a small model and watch it learn", () => import("./quickstart.js")),
    serve: leaf("Serve the Tinker API on this machine", () => import("./serve.js")),
    studio: leaf("Show runs in a browser", () => import("./studio.js")),
    models: leaf("List the models that can be trained", () => import("./models.js")),
    chat: leaf("Chat with a base model or a checkpoint", () => import("./chat.js")),
    sample: leaf("Continue a prompt", () => import("./sample.js")),
    train: group("Train a model", {
      sft: leaf("Fine-tune a model on conversations", () => import("./train/sft.js")),
      rl: leaf("Train a model by rewards", () => import("./train/rl.js")),
      dpo: leaf("Train a model on preferences", () => import("./train/dpo.js")),
      distill: leaf("Train a student model on a teacher", () => import("./train/distill.js")),
    }),
    recipe: group("Run methods on small tasks", {
      list: leaf("List the recipes", () => import("./recipe/list.js")),
      run: leaf("Run a recipe and check its results", () => import("./recipe/run.js")),
    }),
    eval: leaf("Evaluate a model on questions with known answers", () => import("./eval.js")),
    run: group("Show training runs", {
      list: leaf("List training runs", () => import("./run/list.js")),
      info: leaf("Show a training run", () => import("./run/info.js")),
    }),
    checkpoint: group("Manage checkpoints", {
      list: leaf("List checkpoints", () => import("./checkpoint/list.js")),
      info: leaf("Show a checkpoint", () => import("./checkpoint/info.js")),
      save: leaf("Save a new adapter of a model", () => import("./checkpoint/save.js")),
      publish: leaf("Publish a checkpoint", () => import("./checkpoint/publish.js")),
      unpublish: leaf("Unpublish a checkpoint", () => import("./checkpoint/unpublish.js")),
      "set-ttl": leaf("Set the expiry of a checkpoint", () => import("./checkpoint/set-ttl.js")),
      delete: leaf("Delete checkpoints", () => import("./checkpoint/delete.js")),
      download: leaf("Download a checkpoint", () => import("./checkpoint/download.js")),
      "push-hf": leaf(
        "Upload a checkpoint to the Hugging Face hub",
        () => import("./checkpoint/push-hf.js"),
      ),
      import: leaf("Import a PEFT adapter into a server", () => import("./checkpoint/import.js")),
      export: leaf("Export a checkpoint as a PEFT adapter", () => import("./checkpoint/export.js")),
      merge: leaf("Merge a checkpoint into its base model", () => import("./checkpoint/merge.js")),
    }),
    session: group("Show sessions", {
      list: leaf("List sessions", () => import("./session/list.js")),
      info: leaf("Show the runs and samplers of a session", () => import("./session/info.js")),
      "export-trace": leaf(
        "Download the timeline of a session",
        () => import("./session/export-trace.js"),
      ),
    }),
    auth: group("Manage the API key", {
      login: leaf("Store an API key", () => import("./auth/login.js")),
      logout: leaf("Remove the stored API key", () => import("./auth/logout.js")),
      status: leaf("Show which API key is used", () => import("./auth/status.js")),
    }),
    billing: group("Show usage", {
      usage: leaf("Show usage by hour", () => import("./billing/usage.js")),
    }),
    doctor: leaf("Check the installation", () => import("./doctor.js")),
    completion: leaf("Print the completion script of a shell", () => import("./completion.js")),
    version: leaf("Print the version", () => import("./version.js")),
  },
);

function leaf(summary: string, load: CommandLeaf["load"]): CommandLeaf {
  return { kind: "command", summary, load };
}

function group(summary: string, children: Readonly<Record<string, CommandNode>>): CommandGroup {
  return { kind: "group", summary, children: new Map(Object.entries(children)) };
}
