export { candidateExample, type CandidateExample, type ReferenceSequence } from "./candidates.js";
export {
  composeLoss,
  type ComposedLoss,
  type LossParts,
  type TermEvent,
  type TermListener,
  type WeightedTerm,
} from "./compose-loss.js";
export { countedSlots, type DatumLogprobs, type LossBatch, type SideData } from "./loss-batch.js";
export {
  reduceData,
  reducePositions,
  type AtDatum,
  type AtPlace,
  type Place,
  type Reduction,
} from "./reduction.js";
export {
  term,
  termWithSides,
  type PrepareContext,
  type SideSource,
  type Term,
  type TermResult,
} from "./term.js";
export { ramp, type RampOptions, type WeightSchedule } from "./weight-schedule.js";
export {
  cispo,
  crossEntropy,
  dro,
  importanceSampling,
  ppo,
  type PolicyInputs,
  type RatioBounds,
} from "./terms/built-in.js";
export type { Candidates } from "./terms/candidate-cells.js";
export {
  consistency,
  pairedConsistency,
  type ConsistencyOptions,
  type PairedConsistencyOptions,
} from "./terms/consistency.js";
export {
  entropy,
  jensenShannon,
  klDivergence,
  type CandidateOptions,
  type EntropyOptions,
  type KlDivergenceOptions,
} from "./terms/divergences.js";
export {
  anchor,
  entropyEstimate,
  klEstimate,
  type AnchorOptions,
  type EntropyEstimateOptions,
  type KlEstimateOptions,
} from "./terms/estimators.js";
export {
  elasticNet,
  l1,
  l2,
  type ElasticNetOptions,
  type L2Options,
  type MagnitudeOptions,
} from "./terms/magnitude.js";
export {
  matrixOrthogonality,
  orthogonality,
  type OrthogonalityMode,
  type OrthogonalityOptions,
} from "./terms/orthogonality.js";
export {
  gradientPenalty,
  outputMagnitude,
  type GradientPenaltyOptions,
  type OutputMagnitudeOptions,
  type ScalarFunction,
} from "./terms/smoothness.js";
