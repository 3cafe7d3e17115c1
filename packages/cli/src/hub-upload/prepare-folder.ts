import { CliError } from "../errors/cli-error.js";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";

const weightFiles = ["adapter_model.safetensors", "adapter_model.bin"];

/** Checks that a folder is a whole adapter, and completes what the hub wants to know about it. */
export async function prepareFolder(
  folder: string,
  facts: ModelCardFacts,
  options: { readonly writesCard: boolean },
): Promise<void> {
  const files = new Set(await readdir(folder));
  const missing = [
    files.has("adapter_config.json") ? [] : ["adapter_config.json"],
    weightFiles.some((name) => files.has(name)) ? [] : [weightFiles.join(" or ")],
    files.has("checkpoint_complete") ? [] : ["checkpoint_complete"],
  ].flat();
  if (missing.length > 0) {
    throw new CliError("The checkpoint is not a whole adapter.", `Missing: ${missing.join(", ")}.`);
  }
  await nameBase(path.join(folder, "adapter_config.json"), facts.baseModel ?? "unknown");
  const card = path.join(folder, "README.md");
  const hasCard = (await stat(card).catch(() => undefined)) !== undefined;
  if (options.writesCard && !hasCard) await writeFile(card, modelCard(facts));
}

async function nameBase(file: string, baseModel: string): Promise<void> {
  const config = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  if (typeof config["base_model_name_or_path"] === "string") return;
  const named = { ...config, base_model_name_or_path: baseModel };
  await writeFile(file, `${JSON.stringify(named, null, 2)}\n`);
}

/** The contents of a model card. */
interface ModelCardFacts {
  readonly repo: string;
  /** The branch, where it is not the main one. */
  readonly revision: string | undefined;
  readonly baseModel: string | null;
  readonly loraRank: number | null;
  readonly checkpointPath: string;
}

/** A model card in the form that the hub reads. */
function modelCard(facts: ModelCardFacts): string {
  const { repo, revision, baseModel, loraRank, checkpointPath } = facts;
  const branch = revision === undefined ? "" : `, revision=${JSON.stringify(revision)}`;
  const base = baseModel ?? "unknown";
  const rank = loraRank === null ? "" : ` of rank ${loraRank}`;
  return `---
base_model: ${base}
library_name: peft
tags:
- tinker
- peft
- lora
- base_model:adapter:${base}
tinker_path: ${checkpointPath}
---

# Adapter of ${base}

A LoRA adapter${rank}, trained over the Tinker API and uploaded from \`${checkpointPath}\`.

\`\`\`python
from peft import AutoPeftModelForCausalLM

model = AutoPeftModelForCausalLM.from_pretrained("${repo}"${branch})
\`\`\`
`;
}
