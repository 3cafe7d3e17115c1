import { ArgumentError, type Datum } from "tinker-ts";
import { asMessages, type Message } from "../renderers/index.js";
import type { EnvironmentGroup, RlSetupContext, RlTrainOptions } from "../rl/index.js";
import {
  defaultLearningRate,
  pickOptions,
  type RunOptions,
  type RunResult,
} from "../runs/index.js";
import {
  defaultBatchSize,
  isPrepared,
  prepareData,
  trainOptionNames,
  type PreparedData,
} from "../supervised/index.js";
import { offPolicyLoop, trainOffPolicy, type OffPolicyOptions } from "./off-policy.js";
import { onPolicyRun, promptGroup, trainOnPolicy, type OnPolicyOptions } from "./on-policy.js";
import {
  distillPrompt,
  promptEpochs,
  type PromptDistillationOptions,
} from "./prompt-distillation.js";
import { sdftRun, trainSdft, type SdftOptions } from "./sdft.js";

/** Options that the caller of a module sets. */
type Given = "service" | "model" | "folder" | "ifExists" | "signal" | "sinks" | "onProgress";

/**
 * A distillation, with its kind by the options: `datasets` of prompts with teachers (on-policy), a `teacher`
 * with `data` (off-policy), `demonstrations` (SDFT), or an `instruction` with `queries` (prompt distillation).
 */
export type DistillSetup =
  | Omit<OnPolicyOptions, Given>
  | Omit<OffPolicyOptions, Given>
  | Omit<SdftOptions, Given>
  | Omit<PromptDistillationOptions, Given>;

/** A distillation as a module exports it: `tinker-ts train distill MODULE` calls it. */
export type DistillModule = (context: RlSetupContext) => DistillSetup | Promise<DistillSetup>;

/** Types a distillation; returns it unchanged. */
export function defineDistillation(module: DistillModule): DistillModule {
  return module;
}

/** The kind of a distillation. */
export type DistillKind = "on-policy" | "off-policy" | "sdft" | "prompt";

/** A distillation that is ready to run. */
export interface Distillation {
  /** The kind. */
  readonly kind: DistillKind;
  /** The prompts, to show answers before and after. */
  readonly questions: readonly (readonly Message[])[];
  /** Prompts, conversations, demonstrations or queries that there are; undefined where they are in a file. */
  readonly size: number | undefined;
  /** Plans `run`. */
  plan(options: DistillRunOptions): Promise<DistillPlan>;
  /** Distills; these options take precedence over the module's. */
  run(options: DistillRunOptions): Promise<RunResult>;
}

/** The options of a distillation that take precedence over the module's. */
export type DistillRunOptions = Pick<RunOptions, "service" | "model" | "folder"> &
  Partial<RunOptions> & {
    readonly learningRate?: number | undefined;
    /** For kinds in which the student answers. */
    readonly maxFailedSteps?: number | undefined;
  };

/** The plan of a distillation. */
export interface DistillPlan {
  /** Steps; the most there can be where answers of the teacher are chosen from. */
  readonly steps: number;
  /** Sequences that are trained in a step. */
  readonly sequencesPerStep: number;
  /** The highest rate; `auto` is the one recommended for the model. */
  readonly learningRate: number | "auto";
  /** The adapter's rank. */
  readonly loraRank: number;
  /** Answers that are sampled before there is anything to train. */
  readonly answersBefore: number;
  /** What the student, or the teacher before it, samples: a group of it, to see how long that takes. */
  readonly sampled?: { readonly group: EnvironmentGroup; readonly maxTokens: number } | undefined;
  /** The data of the first step, where they are given. */
  readonly data?: readonly Datum[] | undefined;
}

const keys: readonly (readonly [DistillKind, readonly string[]])[] = [
  ["on-policy", ["datasets"]],
  ["sdft", ["demonstrations"]],
  ["prompt", ["instruction", "queries"]],
  ["off-policy", ["teacher", "data"]],
];

/** The distillation of a module. */
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
  // Given data are read once, by the plan or by the run.
  let prepared: PreparedData | undefined;
  const merged = ({ maxFailedSteps, ...options }: DistillRunOptions): never => {
    const isPlayed = kind === "on-policy" || kind === "sdft";
    const chosen = { ...options, ...(isPlayed && { maxFailedSteps }) };
    const given = Object.entries(chosen).filter(([, value]) => value !== undefined);
    return { ...setup, ...Object.fromEntries(given), ...(prepared && { data: prepared }) } as never;
  };
  const plan: Distillation["plan"] = async (options) => {
    const all = merged(options);
    switch (kind) {
      case "on-policy":
        return planPlayed(await onPolicyRun(all));
      case "sdft":
        return planPlayed(await sdftRun(all));
      case "prompt":
        return planPrompt(all, context);
      case "off-policy":
        prepared ??= await prepareOffPolicy(all);
        return planData(all, prepared);
    }
  };
  const run: Distillation["run"] = async (options) => {
    const all = merged(options);
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
  return { kind, questions: questions ?? [], size: questions?.length, plan, run };
}

/** What a student answers and a teacher judges. */
async function planPlayed(run: RlTrainOptions): Promise<DistillPlan> {
  const { dataset, learningRate, loraRank = 32, maxTokens, maxSteps = Infinity } = run;
  const groups = await dataset.batch(0);
  const sizes = await Promise.all(groups.map(async (group) => group.environments()));
  // Made only to be counted.
  await Promise.all(sizes.flat().map(async (environment) => environment.close?.()));
  return {
    steps: Math.min(dataset.length, maxSteps),
    sequencesPerStep: sizes.flat().length,
    learningRate,
    loraRank,
    answersBefore: 0,
    sampled: { group: groups[0]!, maxTokens },
  };
}

/** Answers of a teacher, and then examples to learn from. */
function planPrompt(options: PromptDistillationOptions, { renderer }: RlSetupContext): DistillPlan {
  const { queries, samplesPerQuery = 1, maxTokens = 1000, maxSteps = Infinity } = options;
  const { loraRank = 32 } = options;
  const answers = queries.length * samplesPerQuery;
  const { batchSize = defaultBatchSize(answers) } = options;
  const perEpoch = Math.floor(answers / batchSize);
  const { numEpochs = promptEpochs(perEpoch) } = options;
  return {
    steps: Math.min(perEpoch * numEpochs, maxSteps),
    sequencesPerStep: batchSize,
    learningRate: options.learningRate ?? defaultLearningRate(options.model, { otherwise: 1e-4 }),
    loraRank,
    answersBefore: answers,
    sampled: { group: promptGroup(queries[0]!, { renderer, size: 4 }), maxTokens },
  };
}

async function prepareOffPolicy(options: OffPolicyOptions): Promise<PreparedData> {
  const { data } = options;
  return isPrepared(data)
    ? data
    : prepareData({ ...pickOptions(offPolicyLoop(options), trainOptionNames), data });
}

/** Given conversations that a teacher reads. */
async function planData(
  options: OffPolicyOptions,
  { dataset, numEpochs: enough = 1 }: PreparedData,
): Promise<DistillPlan> {
  const loop = offPolicyLoop(options);
  const { numEpochs = enough, learningRate, loraRank, maxSteps = Infinity } = loop;
  const data = await dataset.batch(0, 0);
  return {
    steps: Math.min(dataset.batchesPerEpoch * numEpochs, maxSteps),
    sequencesPerStep: data.length,
    learningRate,
    loraRank,
    answersBefore: 0,
    data,
  };
}

function questionsOf(
  kind: DistillKind,
  setup: OnPolicyOptions & SdftOptions & PromptDistillationOptions & OffPolicyOptions,
): readonly (readonly Message[])[] | undefined {
  switch (kind) {
    case "on-policy":
      return setup.datasets.flatMap(({ prompts }) => prompts.map((one) => asMessages(one)));
    case "sdft":
      return setup.demonstrations.map(({ question }) => asMessages(question));
    case "prompt":
      return setup.queries.map((one) => asMessages(one));
    case "off-policy":
      return undefined;
  }
}
