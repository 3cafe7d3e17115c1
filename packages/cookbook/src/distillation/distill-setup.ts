import { ArgumentError } from "tinker-ts";
import type { Message } from "../renderers/index.js";
import type { RlSetupContext } from "../rl/index.js";
import type { RunOptions, RunResult } from "../runs/index.js";
import { trainOffPolicy, type OffPolicyOptions } from "./off-policy.js";
import { messagesOf, trainOnPolicy, type OnPolicyOptions } from "./on-policy.js";
import { distillPrompt, type PromptDistillationOptions } from "./prompt-distillation.js";
import { trainSdft, type SdftOptions } from "./sdft.js";

/** What the one who runs a module decides. */
type Given = "service" | "model" | "folder" | "ifExists" | "signal" | "sinks" | "onProgress";

/**
 * What is distilled, told apart by what there is: `datasets` of prompts with teachers (on-policy), a `teacher`
 * with `data` (off-policy), `demonstrations` (SDFT), or an `instruction` with `queries` (prompt distillation).
 */
export type DistillSetup =
  | Omit<OnPolicyOptions, Given>
  | Omit<OffPolicyOptions, Given>
  | Omit<SdftOptions, Given>
  | Omit<PromptDistillationOptions, Given>;

/** A distillation as a module exports it: `tinker-ts train distill MODULE` calls it. */
export type DistillModule = (context: RlSetupContext) => DistillSetup | Promise<DistillSetup>;

/** Lets the types of a distillation follow; returns it as it is. */
export function defineDistillation(module: DistillModule): DistillModule {
  return module;
}

/** How something is distilled. */
export type DistillKind = "on-policy" | "off-policy" | "sdft" | "prompt";

/** A distillation that is ready to be run. */
export interface Distillation {
  /** How it is distilled. */
  readonly kind: DistillKind;
  /** Some of what is asked, to show answers before and after. */
  readonly questions: readonly (readonly Message[])[];
  /** Prompts, conversations, demonstrations or queries that there are; undefined where they are in a file. */
  readonly size: number | undefined;
  /** Distills; what was chosen wins over what the module says. */
  run(
    options: Pick<RunOptions, "service" | "model" | "folder"> &
      Partial<RunOptions> & {
        readonly learningRate?: number | undefined;
      },
  ): Promise<RunResult>;
}

const keys: readonly (readonly [DistillKind, readonly string[]])[] = [
  ["on-policy", ["datasets"]],
  ["sdft", ["demonstrations"]],
  ["prompt", ["instruction", "queries"]],
  ["off-policy", ["teacher", "data"]],
];

/** What a module made, if it is a distillation. */
export async function readDistillModule(
  found: unknown,
  context: RlSetupContext,
): Promise<Distillation> {
  const made: unknown =
    typeof found === "function" ? await (found as DistillModule)(context) : found;
  const setup = (made ?? {}) as Readonly<Record<string, unknown>>;
  const kind = keys.find(([, names]) => names.every((name) => setup[name] !== undefined))?.[0];
  if (!kind) {
    const known = keys.map(([, names]) => names.join(" + ")).join("; ");
    const own = Object.keys(setup).join(", ") || "nothing";
    throw new ArgumentError("module", `must give one of: ${known}; it gives ${own}`);
  }
  const questions = questionsOf(kind, setup as never);
  const run: Distillation["run"] = async (options) => {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const all = { ...setup, ...Object.fromEntries(given) } as never;
    switch (kind) {
      case "on-policy":
        return trainOnPolicy(all);
      case "off-policy":
        return trainOffPolicy(all);
      case "sdft":
        return trainSdft(all);
      case "prompt":
        return distillPrompt(all);
    }
  };
  return { kind, questions: questions ?? [], size: questions?.length, run };
}

function questionsOf(
  kind: DistillKind,
  setup: OnPolicyOptions & SdftOptions & PromptDistillationOptions & OffPolicyOptions,
): readonly (readonly Message[])[] | undefined {
  switch (kind) {
    case "on-policy":
      return setup.datasets.flatMap(({ prompts }) => prompts.map(messagesOf));
    case "sdft":
      return setup.demonstrations.map(({ question }) => messagesOf(question));
    case "prompt":
      return setup.queries.map(messagesOf);
    case "off-policy":
      return undefined;
  }
}
