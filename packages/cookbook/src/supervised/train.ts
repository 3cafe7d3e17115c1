import { nllEvaluator } from "../evaluation/index.js";
import { nextTokens } from "./objective.js";
import { isPrepared, prepareData } from "./prepare-data.js";
import { trainBatches, type TrainResult } from "./train-batches.js";
import { completeOptions, dataConfig, type TrainOptions } from "./train-options.js";

/**
 * Fine-tunes a model on examples: everything from a file of conversations to saved weights.
 *
 * A folder that holds a run is gone on with; the result is the same as if it had never stopped.
 */
export async function train(options: TrainOptions): Promise<TrainResult> {
  const complete = completeOptions(options);
  const { data } = complete;
  const prepared = isPrepared(data) ? data : await prepareData({ ...complete, data });
  const { dataset, renderer, tokenizer, test } = prepared;
  return trainBatches(complete, {
    config: dataConfig(complete, prepared),
    dataset,
    rendererName: renderer?.name,
    objective: nextTokens(tokenizer),
    evaluators: test.length === 0 ? [] : [nllEvaluator(test, { tokenizer })],
  });
}
