export { adamDefaults } from "./adam.js";
export {
  recommendedLearningRate,
  scaleLearningRate,
  transferLearningRate,
  type LearningRateOptions,
} from "./learning-rate.js";
export { loraParameterCount, rankForTokens, type LoraSizeOptions } from "./lora-size.js";
export { hiddenSizeOfConfig, modelSizes, type ModelSizes } from "./model-sizes.js";
export { scheduleMultiplier, type LearningRateSchedule } from "./schedule.js";
