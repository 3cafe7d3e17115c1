import { HubError } from "../errors.js";
import { isObject } from "./json.js";

/** Weights in one file. */
export const singleWeightsFile = "model.safetensors";

/** The index of a sharded model: the file of each tensor. */
export const weightIndexFile = "model.safetensors.index.json";

/** Checks an index and returns the file name of each tensor. */
export function parseWeightIndex(where: string, index: unknown): Map<string, string> {
  const map = isObject(index) ? index["weight_map"] : undefined;
  if (!isObject(map)) {
    throw new HubError("invalid_weight_index", `${where} has no object "weight_map".`);
  }
  const files = new Map<string, string>();
  for (const [tensor, file] of Object.entries(map)) {
    if (typeof file !== "string" || !/^[^/\\]+\.safetensors$/.test(file)) {
      throw new HubError(
        "invalid_weight_index",
        `${where} places tensor "${tensor}" in ${JSON.stringify(file)}, which is not the name of a safetensors file in the same folder.`,
      );
    }
    files.set(tensor, file);
  }
  return files;
}
