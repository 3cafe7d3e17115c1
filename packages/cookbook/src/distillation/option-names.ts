import type { OptionNames } from "../runs/index.js";
import { rlOptionNames } from "../rl/index.js";
import { trainOptionNames } from "../supervised/index.js";
import type { OffPolicyOptions } from "./off-policy.js";
import type { OnPolicyOptions } from "./on-policy.js";
import type { PromptDistillationOptions } from "./prompt-distillation.js";
import type { SdftOptions } from "./sdft.js";

const { dataset: _dataset, adjusters: _adjusters, advantages, loss, ...options } = rlOptionNames;
/** With defaults of their own. */
const { data: _data, ...fromAnswers } = trainOptionNames;
const played = { ...options, maxTokens: true, learningRate: true } as const;

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
    datasets: "needed",
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
    demonstrations: "needed",
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
    ...fromAnswers,
    instruction: "needed",
    queries: "needed",
    teacher: true,
    samplesPerQuery: true,
    temperature: true,
    maxTokens: true,
    concurrency: true,
    keep: true,
  },
  "off-policy": {
    ...trainOptionNames,
    teacher: "needed",
    numTeacherTargets: true,
    teacherConcurrency: true,
    keepsAnswers: true,
  },
};
