import type { ServiceClient } from "tinker-ts";
import type { RunSink } from "tinker-ts/run-log";
import { chooseRenderer } from "../runs/index.js";
import { holds, type Check, type Recipe, type RecipeResult } from "./recipe.js";

/** How a recipe is run. */
export interface RunRecipeOptions {
  /** Where the model is trained. */
  readonly service: ServiceClient;
  /** The parent of the folders of the recipe's runs; existing runs are resumed. */
  readonly folder: string;
  /** The name of a model that the server supports. @default "tinker-ts/sprout" */
  readonly model?: string | undefined;
  /** Ends every run after so many steps. */
  readonly maxSteps?: number | undefined;
  /** Decides what is sampled and the first weights. @default 0 */
  readonly seed?: number | undefined;
  /** Called with notes of the recipe. */
  readonly say?: ((text: string) => void) | undefined;
  /** Shows a run of so many steps. @default nowhere */
  readonly show?: ((totalSteps: number) => readonly RunSink[]) | undefined;
  /** Gives the recipe up. */
  readonly signal?: AbortSignal | undefined;
}

/** What a recipe found out, judged. */
export interface JudgedResult extends RecipeResult {
  /** Whether everything that must hold does. */
  readonly holds: boolean;
  /** What does not. */
  readonly failed: readonly Check[];
  /** Seconds it took. */
  readonly seconds: number;
}

/** Runs a recipe with the model's chat format and judges what came of it. */
export async function runRecipe(recipe: Recipe, options: RunRecipeOptions): Promise<JudgedResult> {
  const { service, model = "tinker-ts/sprout", seed = 0, signal } = options;
  const started = performance.now();
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await sampling.getTokenizer();
  const renderer = await chooseRenderer({ model, tokenizer, service, signal });
  const { say = () => {}, show = () => [] } = options;
  const result = await recipe.run({ ...options, model, seed, renderer, say, show });
  const failed = result.checks.filter((check) => !holds(check));
  const seconds = (performance.now() - started) / 1000;
  return { ...result, holds: failed.length === 0, failed, seconds };
}
