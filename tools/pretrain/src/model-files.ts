import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { writeSafetensors, type NamedTensors } from "@tinker-ts/engine";
import { textOf, writeDocument } from "./corpus/documents.js";
import { generationConfigJson, modelConfigJson, type Recipe } from "./recipe.js";
import { countWords, tokenizerConfigJson, tokenizerJson } from "./tokenizer/tokenizer-files.js";
import { trainBpe } from "./tokenizer/train-bpe.js";

/** Makes the tokenizer and writes it, with the configuration, as a Hugging Face folder without weights. */
export async function writeModelSkeleton(folder: string, recipe: Recipe): Promise<void> {
  await mkdir(folder, { recursive: true });
  const texts = Array.from({ length: recipe.tokenizerDocuments }, (_, number) =>
    textOf(writeDocument("training", number)),
  );
  const merges = trainBpe(countWords(texts), recipe.mergeCount);
  if (merges.length < recipe.mergeCount) {
    throw new Error(
      `mergeCount: ${recipe.tokenizerDocuments} documents give ${merges.length} merges only; ` +
        "raise tokenizerDocuments.",
    );
  }
  const files = {
    "config.json": modelConfigJson(recipe),
    "generation_config.json": generationConfigJson(recipe),
    "tokenizer.json": tokenizerJson(merges),
    "tokenizer_config.json": tokenizerConfigJson(recipe.contextLength),
  };
  for (const [name, json] of Object.entries(files)) {
    await writeFile(path.join(folder, name), `${JSON.stringify(json, null, 2)}\n`);
  }
}

/** Writes the weights into a model folder, rounded to bfloat16. */
export async function writeModelWeights(folder: string, tensors: NamedTensors): Promise<void> {
  await writeSafetensors(
    path.join(folder, "model.safetensors"),
    [...tensors].map(([name, { data, shape }]) => ({ name, dtype: "BF16" as const, data, shape })),
    { metadata: { format: "pt" } },
  );
}
