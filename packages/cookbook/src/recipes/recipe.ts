import type { ServiceClient } from "tinker-ts";
import type { RunSink } from "tinker-ts/run-log";
import type { Renderer } from "../renderers/index.js";

/** What a recipe works with. */
export interface RecipeContext {
  /** Where the model is trained. */
  readonly service: ServiceClient;
  /** The name of a model that the server supports. */
  readonly model: string;
  /** The model's chat format. */
  readonly renderer: Renderer;
  /** Holds the folders of the recipe's runs; what is there is gone on with. */
  readonly folder: string;
  /** Ends every run after so many steps. The checks then say little. */
  readonly maxSteps?: number | undefined;
  /** Decides what is sampled and the first weights. */
  readonly seed: number;
  /** Prints a note. */
  readonly say: (text: string) => void;
  /** Sinks that show a run of so many steps. */
  readonly show: (totalSteps: number) => readonly RunSink[];
  /** Gives the recipe up. */
  readonly signal?: AbortSignal | undefined;
}

/** Something that must hold when a recipe is done. */
export interface Check {
  /** What was measured. */
  readonly what: string;
  /** How it came out. */
  readonly value: number;
  /** The least that is good enough. */
  readonly atLeast?: number | undefined;
  /** The most that is good enough. */
  readonly atMost?: number | undefined;
  /** Whether values are shares of one or plain numbers. @default "share" */
  readonly unit?: "share" | "number" | undefined;
}

/** What a recipe found out. */
export interface RecipeResult {
  /** What must hold; a value without bounds is reported and not judged. */
  readonly checks: readonly Check[];
  /** The final weights, for sampling. */
  readonly samplerPath?: string | undefined;
}

/** A method, shown on a task that a small model learns within minutes. */
export interface Recipe {
  /** What it is called by. */
  readonly name: string;
  /** What it does, in a line. */
  readonly summary: string;
  /** What one can learn from it, in a few lines. */
  readonly teaches: string;
  /** Does it and measures what came of it. */
  run(context: RecipeContext): Promise<RecipeResult>;
}

/** Whether a check is good enough; what is not a number never is. */
export function holds({ value, atLeast, atMost }: Check): boolean {
  if (Number.isNaN(value)) return false;
  return value >= (atLeast ?? value) && value <= (atMost ?? value);
}
