import type { OptionNames } from "../runs/index.js";
import { rlOptionNames } from "../rl/index.js";
import { trainOptionNames } from "../supervised/index.js";
import type { OffPolicyOptions } from "./off-policy.js";
import type { OnPolicyOptions } from "./on-policy.js";
import type { PromptDistillationOptions } from "./prompt-distillation.js";
import type { SdftOptions } from "./sdft.js";

const { dataset: _dataset, adjusters: _adjusters, advantages, loss, ...played } = rlOptionNames;

/** The names of the options of each kind of distillation. */
export const distillOptionNames: {
  readonly "on-policy": OptionNames<OnPolicyOptions>;
  readonly sdft: OptionNames<SdftOptions>;
  readonly prompt: OptionNames<PromptDistillationOptions>;
  readonly "off-policy": OptionNames<OffPolicyOptions>;
} = {
  "on-policy": {
    ...played,
    loss,
    datasets: true,
    renderer: true,
    groupSize: true,
    numEpochs: true,
    maxPromptTokens: true,
    coefficient: true,
    discount: true,
  },
  sdft: {
    ...played,
    advantages,
    demonstrations: true,
    teacher: true,
    teacherSyncEvery: true,
    teacherMessages: true,
    renderer: true,
    topK: true,
    reverse: true,
    groupSize: true,
    groupsPerBatch: true,
    numEpochs: true,
    skipTokens: true,
    maxContextLength: true,
  },
  prompt: {
    ...trainOptionNames,
    instruction: true,
    queries: true,
    teacher: true,
    samplesPerQuery: true,
    temperature: true,
    maxTokens: true,
    concurrency: true,
    keep: true,
  },
  "off-policy": {
    ...trainOptionNames,
    teacher: true,
    numTeacherTargets: true,
    teacherConcurrency: true,
    keepsAnswers: true,
  },
};
