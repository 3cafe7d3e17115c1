import { ArgumentError } from "tinker-ts";
import { shuffledBatch } from "../data/index.js";
import type { RlDataset } from "./train-options.js";
import type { EnvironmentGroup } from "./types.js";

/** How a list of tasks becomes batches. */
export interface GroupDatasetOptions {
  /** Groups per step. */
  readonly groupsPerBatch: number;
  /** How often the tasks are gone through. @default 1 */
  readonly numEpochs?: number | undefined;
  /** Decides, with the epoch, the order of tasks. @default 0 */
  readonly seed?: number | undefined;
}

/** Groups made of a list, for instance of prompts: full batches, in another order every time it is gone through. */
export function groupDataset<T>(
  items: readonly T[],
  make: (item: T) => EnvironmentGroup,
  { groupsPerBatch, numEpochs = 1, seed = 0 }: GroupDatasetOptions,
): RlDataset {
  if (
    !Number.isSafeInteger(groupsPerBatch) ||
    groupsPerBatch < 1 ||
    groupsPerBatch > items.length
  ) {
    throw new ArgumentError(
      "groupsPerBatch",
      `must be an integer from 1 to ${items.length} (the number of tasks), not ${groupsPerBatch}`,
    );
  }
  const perEpoch = Math.floor(items.length / groupsPerBatch);
  return {
    length: perEpoch * numEpochs,
    batch(index) {
      const epoch = Math.floor(index / perEpoch);
      const batch = { batchSize: groupsPerBatch, seed, epoch, index: index % perEpoch };
      return shuffledBatch(items, batch).map((item) => make(item));
    },
  };
}
