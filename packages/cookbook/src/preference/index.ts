export {
  judgedOf,
  loadComparisons,
  swapped,
  toComparison,
  toJudged,
  toPair,
  type Comparison,
  type JudgedCompletion,
  type LabeledComparison,
  type PreferenceLabel,
} from "./comparison.js";
export {
  PreferenceDataset,
  preparePreferences,
  type PreferenceDataOptions,
  type PreferenceReport,
  type PreferenceRow,
  type PreparedPreferences,
  type PreparePreferencesOptions,
} from "./preference-data.js";
export {
  trainFromPreferences,
  type PipelineResult,
  type PipelineStage,
  type PreferencePipelineOptions,
} from "./pipeline.js";
export { referenceFile, ReferenceLogprobs, type ReferenceOptions } from "./reference-logprobs.js";
export {
  chatPreferenceModel,
  comparisonDatum,
  comparisonMessages,
  labelTokens,
  trainRewardModel,
  type PreferenceModel,
  type RewardModelOptions,
} from "./reward-model.js";
export {
  tournamentGroup,
  winRateEvaluator,
  type TournamentGroupOptions,
  type WinRateOptions,
} from "./tournament-group.js";
export { isUnpaired, preferenceLoop, train, type PreferenceTrainOptions } from "./train.js";
export {
  dpo,
  ipo,
  kto,
  pairLoss,
  preferenceMetrics,
  simpo,
  unpairedLoss,
  weightedShift,
  type KtoOptions,
  type PairShift,
  type PairSlope,
  type PreferenceLoss,
  type Reference,
  type SimpoOptions,
  type UnpairedLoss,
  type UnpairedShift,
} from "./preference-loss.js";
export { tournamentPairs, tournamentScores, type TournamentPattern } from "./tournament.js";
