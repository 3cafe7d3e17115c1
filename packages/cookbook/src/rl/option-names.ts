import { runOptionNames, type OptionNames } from "../runs/index.js";
import type { RlTrainOptions } from "./train-options.js";

/** The names of the options of training by rewards. */
export const rlOptionNames: OptionNames<RlTrainOptions> = {
  ...runOptionNames,
  dataset: "needed",
  maxTokens: "needed",
  temperature: true,
  contextWindow: true,
  learningRate: "needed",
  mode: true,
  loss: true,
  advantages: true,
  removeConstantRewardGroups: true,
  numSubsteps: true,
  adjusters: true,
  computePostKl: true,
  limits: true,
  hooks: true,
  termination: true,
  tolerance: true,
  maxFailedSteps: true,
  maxConcurrentGroups: true,
  numGroupsToLog: true,
  config: true,
  notCompared: true,
};
