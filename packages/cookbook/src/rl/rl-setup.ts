import { ArgumentError, type SamplingClient, type ServiceClient, type Tokenizer } from "tinker-ts";
import type { Renderer } from "../renderers/index.js";
import type { RlTrainOptions } from "./train-options.js";

/** What a module that describes a task works with. */
export interface RlSetupContext {
  /** Where the model is trained. */
  readonly service: ServiceClient;
  /** The model's name. */
  readonly model: string;
  /** The model as it is, for instance to play opponents or to stay near to. */
  readonly sampling: SamplingClient;
  /** The model's chat format. */
  readonly renderer: Renderer;
  /** The model's tokenizer. */
  readonly tokenizer: Tokenizer;
  /** Decides what is drawn. */
  readonly seed: number;
  /** Gives the work up. */
  readonly signal?: AbortSignal | undefined;
}

/** What is played, and how it is trained where that matters to the task. */
export type RlSetup = Pick<RlTrainOptions, "dataset"> &
  Partial<
    Omit<
      RlTrainOptions,
      "dataset" | "service" | "model" | "folder" | "ifExists" | "signal" | "sinks" | "onProgress"
    >
  >;

/** A task as a module exports it: `tinker-ts train rl MODULE` calls it. */
export type RlModule = (context: RlSetupContext) => RlSetup | Promise<RlSetup>;

/** Lets the types of a task follow; returns it as it is. */
export function defineRl(module: RlModule): RlModule {
  return module;
}

/** What a module made, if it is a task. */
export async function readRlModule(found: unknown, context: RlSetupContext): Promise<RlSetup> {
  const made: unknown = typeof found === "function" ? await (found as RlModule)(context) : found;
  const { dataset } = (made ?? {}) as Partial<RlSetup>;
  if (typeof dataset?.batch !== "function" || typeof dataset.length !== "number") {
    throw new ArgumentError(
      "dataset",
      "is missing: a task is { dataset: { length: STEPS, batch: (index) => GROUPS } }",
    );
  }
  return made as RlSetup;
}
