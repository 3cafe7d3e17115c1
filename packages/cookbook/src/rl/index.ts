export {
  computeAdvantages,
  drGrpo,
  isConstant,
  leaveOneOut,
  meanCentred,
  normalized,
  rawRewards,
  reinforcePlusPlus,
  withoutConstantGroups,
  type AdvantageEstimator,
} from "./advantages.js";
export { agentic } from "./agentic.js";
export { CaptureError, captureRequests, type Capture, type CaptureOptions } from "./capture.js";
export { gameGroup, type Game, type GameGroupOptions, type Opponent } from "./environments/game.js";
export { groupDataset, type GroupDatasetOptions } from "./group-dataset.js";
export {
  groupOf,
  type GroupOfOptions,
  type Problem,
  problemEnvironment,
  problemGroup,
  type ProblemOptions,
} from "./environments/problem-environment.js";
export { guessNumber, type GuessNumberOptions } from "./environments/guess-number.js";
export {
  messageEnvironment,
  type Conversation,
  type MessageEnvironmentOptions,
  type MessageStep,
  type ParseErrorPolicy,
} from "./environments/message-environment.js";
export {
  toolEnvironment,
  toolGroup,
  type ToolEnvironmentOptions,
  type ToolEpisode,
  type ToolGrade,
  type ToolTask,
} from "./environments/tool-environment.js";
export {
  modelAnswerer,
  twentyQuestions,
  type TwentyQuestionsOptions,
} from "./environments/twenty-questions.js";
export { messageCompleter, type Completion, type MessageCompleter } from "./message-completer.js";
export { prePostMetrics, sampleTrainMetrics, trajectoryMetrics } from "./metrics.js";
export {
  discountedFutureSum,
  fullSequence,
  maskedMean,
  penalizeDistance,
  penalizeTeacherDistance,
  scoreData,
  type Penalized,
  type PenaltyOptions,
  type ScoreSequence,
} from "./penalties.js";
export {
  batchToData,
  type PolicyDatum,
  type PolicyLoss,
  readyForLoss,
  submitPolicyPass,
  toTrainingDatum,
  trajectoryToData,
} from "./policy-datum.js";
export {
  samplingPolicy,
  type Policy,
  type PolicyRequest,
  type SamplingPolicyOptions,
} from "./policy.js";
export {
  failFast,
  GroupFailedError,
  minViableGroup,
  retryOnFailure,
  rolloutGroup,
  type ErrorTolerance,
  type RolloutGroupOptions,
  type TerminationPolicy,
} from "./rollout-group.js";
export { rollout, type RolloutHooks, type RolloutOptions, type RolloutState } from "./rollout.js";
export {
  totalReward,
  totalRewards,
  type Action,
  type Environment,
  type EnvironmentGroup,
  type GroupReward,
  type Numbers,
  type Observation,
  type Overflow,
  type RolloutLimits,
  type StepContext,
  type StepResult,
  type StopCondition,
  type Trajectory,
  type TrajectoryGroup,
  type Transition,
} from "./types.js";
export {
  klPenalty,
  prepareBatch,
  type AdjustContext,
  type DataAdjuster,
  type PreparedBatch,
} from "./batch-update.js";
export { rolloutEvaluator, type RolloutEvaluatorOptions } from "./rollout-evaluator.js";
export { rolloutSummaries, transcripts, type RecordPlace } from "./records.js";
export {
  defineRl,
  readRlModule,
  type RlModule,
  type RlSetup,
  type RlSetupContext,
} from "./rl-setup.js";
export { rlOptionNames } from "./option-names.js";
export { mixSeeds } from "./seeds.js";
export { train } from "./train.js";
export type { RlDataset, RlMode, RlTrainOptions } from "./train-options.js";
