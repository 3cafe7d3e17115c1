import { fileURLToPath } from "node:url";
import { resolveModel, type ResolvedModel, type ResolveModelOptions } from "@tinker-ts/hub";

/** The id of the model that comes with this package. */
export const embeddedModelId = "tinker-ts/sprout";

/** The folder of the model that comes with this package. */
export const embeddedModelFolder: string = fileURLToPath(new URL("../sprout", import.meta.url));

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
