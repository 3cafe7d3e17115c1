import type { CommandGroup, CommandLeaf, CommandNode } from "../command-tree.js";

/*
 * Only words and summaries are here: a command's module is loaded when the command is used, and the
 * packages that do the work when it runs. That is what makes `--help` quick.
 */
/** Every command. */
export const commandTree: CommandGroup = group(
  "Fine-tune language models: on this machine, on your own server, or on the hosted service.",
  {
    quickstart: leaf("Trains a small model in front of your eyes", () => import("./quickstart.js")),
    serve: leaf("Serves the Tinker API on this machine", () => import("./serve.js")),
    studio: leaf("Shows runs in a browser", () => import("./studio.js")),
    models: leaf("Lists the models that can be trained", () => import("./models.js")),
    chat: leaf("Talks to a base model or a checkpoint", () => import("./chat.js")),
    sample: leaf("Continues a prompt", () => import("./sample.js")),
    train: group("Fine-tuning.", {
      sft: leaf("Fine-tunes a model on conversations", () => import("./train/sft.js")),
      rl: leaf("Trains a model by rewards", () => import("./train/rl.js")),
      dpo: leaf("Trains a model on preferences", () => import("./train/dpo.js")),
      distill: leaf("Trains a student on what a teacher knows", () => import("./train/distill.js")),
    }),
    recipe: group("Methods, each shown on a small task.", {
      list: leaf("Lists the recipes", () => import("./recipe/list.js")),
      run: leaf("Runs a recipe and judges what came of it", () => import("./recipe/run.js")),
    }),
    eval: leaf("Asks a model questions and judges its answers", () => import("./eval.js")),
    run: group("Training runs.", {
      list: leaf("Lists training runs", () => import("./run/list.js")),
      info: leaf("Shows one training run", () => import("./run/info.js")),
    }),
    checkpoint: group("Saved weights.", {
      list: leaf("Lists checkpoints", () => import("./checkpoint/list.js")),
      info: leaf("Shows one checkpoint", () => import("./checkpoint/info.js")),
      save: leaf("Saves a fresh adapter of a model", () => import("./checkpoint/save.js")),
      publish: leaf("Lets everybody use a checkpoint", () => import("./checkpoint/publish.js")),
      unpublish: leaf("Makes a checkpoint private", () => import("./checkpoint/unpublish.js")),
      "set-ttl": leaf("Sets when a checkpoint expires", () => import("./checkpoint/set-ttl.js")),
      delete: leaf("Deletes checkpoints", () => import("./checkpoint/delete.js")),
      download: leaf("Downloads a checkpoint", () => import("./checkpoint/download.js")),
      "push-hf": leaf(
        "Uploads a checkpoint to the Hugging Face hub",
        () => import("./checkpoint/push-hf.js"),
      ),
      import: leaf("Brings a PEFT adapter to a server", () => import("./checkpoint/import.js")),
      export: leaf("Writes a checkpoint as a PEFT adapter", () => import("./checkpoint/export.js")),
      merge: leaf(
        "Writes a checkpoint and its base model as one model",
        () => import("./checkpoint/merge.js"),
      ),
    }),
    session: group("Sessions.", {
      list: leaf("Lists sessions", () => import("./session/list.js")),
      info: leaf("Shows the runs and samplers of a session", () => import("./session/info.js")),
      "export-trace": leaf(
        "Downloads the timeline of a session",
        () => import("./session/export-trace.js"),
      ),
    }),
    billing: group("What was used.", {
      usage: leaf("Shows the usage of some days, hour by hour", () => import("./billing/usage.js")),
    }),
    doctor: leaf("Checks that everything needed is there", () => import("./doctor.js")),
    completion: leaf("Prints the completion script of a shell", () => import("./completion.js")),
    version: leaf("Prints the version", () => import("./version.js")),
  },
);

function leaf(summary: string, load: CommandLeaf["load"]): CommandLeaf {
  return { kind: "command", summary, load };
}

function group(summary: string, children: Readonly<Record<string, CommandNode>>): CommandGroup {
  return { kind: "group", summary, children: new Map(Object.entries(children)) };
}
