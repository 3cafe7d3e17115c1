import type { OptionNames } from "../runs/index.js";
import { loopOptionNames, trainOptionNames } from "../supervised/index.js";
import type { PreparePreferencesOptions } from "./preference-data.js";
import type { RewardModelOptions } from "./reward-model.js";
import type { PreferenceTrainOptions } from "./train.js";

const { trainOnWhat: _trainOnWhat, reduction: _reduction, ...shared } = trainOptionNames;

/** The names of the options of training on preferences; `preparePreferences` takes the same. */
export const preferenceOptionNames: OptionNames<
  PreferenceTrainOptions & PreparePreferencesOptions
> = { ...shared, loss: true, reference: true, unpaired: true };

/** The names of the options of a reward model. */
export const rewardOptionNames: OptionNames<RewardModelOptions> = {
  ...loopOptionNames,
  data: "needed",
  map: true,
  evalData: true,
  testSize: true,
  renderer: true,
  batchSize: true,
  badRows: true,
  hub: true,
  maxRows: true,
  bothOrders: true,
};
