import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { CliError } from "../errors/cli-error.js";
import { modelCard, type ModelCardFacts } from "./model-card.js";

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
