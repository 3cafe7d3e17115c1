import { HubError } from "../errors.js";
import { singleWeightsFile, weightIndexFile } from "../files/weight-index.js";

/** The files to download: a whole model, or its tokenizer only. */
export type HubFiles = "model" | "tokenizer";

const tokenizerFiles = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
];

const configFiles = ["config.json", "generation_config.json"];

/** The small files among those that a repository has; weights are decided by `weightFile`. */
export function smallFiles(available: readonly string[], files: HubFiles): string[] {
  const wanted = files === "model" ? [...configFiles, ...tokenizerFiles] : tokenizerFiles;
  return wanted.filter((name) => available.includes(name));
}

/** The file with the weights, or the index of several; throws if the repository is not such a model. */
export function weightFile(id: string, available: readonly string[]): string {
  if (!available.includes("config.json")) {
    const isAdapter = available.includes("adapter_config.json");
    throw new HubError(
      "model_not_found",
      isAdapter
        ? `${id} is an adapter. Give the model that it was made for, and load the adapter onto it.`
        : `${id} has no config.json: it is not a model in the format of transformers.`,
    );
  }
  for (const name of [singleWeightsFile, weightIndexFile]) {
    if (available.includes(name)) return name;
  }
  const others = available.filter((name) => /\.(bin|gguf|pth|pt|onnx|safetensors)$/.test(name));
  throw new HubError(
    "weights_missing",
    `${id} has neither ${singleWeightsFile} nor ${weightIndexFile}` +
      `${others.length > 0 ? ` (it has ${others.slice(0, 5).join(", ")})` : ""}. ` +
      "Only safetensors weights are supported.",
  );
}
