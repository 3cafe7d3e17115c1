import { nllEvaluator } from "../evaluation/index.js";
import { checkOptionNames, inRunFolder } from "../runs/index.js";
import { nextTokens } from "./objective.js";
import { trainOptionNames } from "./option-names.js";
import { isPrepared, prepareData } from "./prepare-data.js";
import { trainBatches, type TrainResult } from "./train-batches.js";
import { completeOptions, dataConfig, type TrainOptions } from "./train-options.js";

/**
 * Fine-tunes a model on examples: everything from a file of conversations to saved weights.
 *
 * A folder that holds a run with the same data and settings is resumed; the result is the same as without the interruption.
 */
export async function train(options: TrainOptions): Promise<TrainResult> {
  checkOptionNames(options, trainOptionNames);
  const complete = await inRunFolder(completeOptions(options));
  const { data } = complete;
  const prepared = isPrepared(data) ? data : await prepareData({ ...complete, data });
  const { dataset, renderer, tokenizer, test } = prepared;
  return trainBatches(complete, {
    config: dataConfig(complete, prepared),
    dataset,
    numEpochs: prepared.numEpochs,
    rendererName: renderer?.name,
    objective: nextTokens(tokenizer),
    evaluators: test.length === 0 ? [] : [nllEvaluator(test, { tokenizer })],
    notCompared: prepared.dataHash === undefined ? ["data"] : [],
    warnings: prepared.warnings,
  });
}
