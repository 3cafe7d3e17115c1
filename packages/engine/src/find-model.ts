import path from "node:path";
import { fileURLToPath } from "node:url";
import { resolveModel, type ResolvedModel, type ResolveModelOptions } from "@tinker-ts/hub";

/** The id of the model that comes with this package. */
export const embeddedModelId = "tinker-ts/sprout";

/** The folder of the model that comes with this package. */
// Not new URL("../sprout", import.meta.url): bundlers take that for a file to copy, and it is a folder.
export const embeddedModelFolder: string = path.resolve(
  path.dirname(fileURLToPath(import.meta.url)),
  "../sprout",
);

/**
 * Finds a model's folder: a folder as it is, the embedded model by its id, any other id in the cache or
 * on the hub. The embedded model needs neither of them.
 */
export async function findModel(
  idOrFolder: string,
  options: ResolveModelOptions = {},
): Promise<ResolvedModel> {
  return resolveModel(idOrFolder === embeddedModelId ? embeddedModelFolder : idOrFolder, options);
}
