export {
  dpo,
  ipo,
  kto,
  pairLoss,
  preferenceMetrics,
  simpo,
  weightedShift,
  type KtoOptions,
  type PairShift,
  type PairSlope,
  type PreferenceLoss,
  type SimpoOptions,
  type UnpairedShift,
} from "./preference-loss.js";
export { tournamentPairs, tournamentScores, type TournamentPattern } from "./tournament.js";
