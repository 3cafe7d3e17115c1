import type { Datum, ModelInput, SamplingClient } from "tinker-ts";
import { inParallel, nllEvaluator } from "../evaluation/index.js";
import type { Dataset } from "../data/index.js";
import type { SupervisedExample } from "../renderers/index.js";
import {
  completeLoopOptions,
  isPrepared,
  prepareData,
  trainBatches,
  type BatchLoopOptions,
  type CompleteLoopOptions,
  type DataOptions,
  type Objective,
  type PreparedData,
  type TrainResult,
} from "../supervised/index.js";
import { KeptAnswers } from "./kept-answers.js";
import { softTargetDatum, type TeacherTopK } from "./soft-targets.js";
import { toTeacher, type Teacher } from "./teacher.js";

/** How a student learns what a teacher would have said in given conversations. */
export interface OffPolicyOptions
  extends Omit<DataOptions, "data" | "model" | "seed">, BatchLoopOptions {
  /** Conversations, as `train sft` takes them, or what `prepareData` made of them. */
  readonly data: DataOptions["data"] | PreparedData;
  /** Who knows better; it must share the student's tokenizer. */
  readonly teacher: SamplingClient | Teacher;
  /** Most probable tokens of the teacher that are learned at every place. @default 20 */
  readonly numTeacherTargets?: number | undefined;
  /** Sequences that the teacher reads at once. @default 64 */
  readonly teacherConcurrency?: number | undefined;
  /**
   * Whether the teacher's answers are kept in the run's folder, so that it reads no sequence twice.
   * @default where the data is gone through more than once
   */
  readonly keepsAnswers?: boolean | undefined;
}

/**
 * Off-policy distillation: at every learned place of given conversations the student learns the teacher's
 * distribution over its best tokens, which says more than the one token that stands there. `forward_kl` is
 * KL(teacher, student) over these tokens, by the weights of the examples.
 */
export async function trainOffPolicy(options: OffPolicyOptions): Promise<TrainResult> {
  const complete = offPolicyLoop(options);
  const { numTeacherTargets = 20, teacherConcurrency = 64, signal } = options;
  const { keepsAnswers = complete.numEpochs > 1 } = options;
  const { data } = options;
  const prepared = isPrepared(data) ? data : await prepareData({ ...complete, data });
  const { dataset, tokenizer, renderer, test, batchSize, files } = prepared;
  const teacher = toTeacher(options.teacher);
  let kept: Promise<KeptAnswers> | undefined;
  const ask = async (sequence: ModelInput): Promise<TeacherTopK> => {
    const read = () => teacher.topLogprobs(sequence, numTeacherTargets, { signal });
    if (!keepsAnswers) return read();
    // Not before the loop has made sure that the folder is its own.
    kept ??= KeptAnswers.open(complete.folder, {
      isEmpty: complete.ifExists === "delete",
    });
    return (await kept).of(sequence, numTeacherTargets, read);
  };
  const taught: Dataset = {
    batchesPerEpoch: dataset.batchesPerEpoch,
    async batch(epoch, index) {
      const given = await dataset.batch(epoch, index);
      return inParallel(given, teacherConcurrency, async (datum) => {
        const example = exampleOf(datum);
        return softTargetDatum(example, await ask(example.input));
      });
    },
  };
  const plan = {
    dataset: taught,
    objective: softTargets,
    evaluators: test.length === 0 ? [] : [nllEvaluator(test, { tokenizer })],
    rendererName: renderer?.name,
    config: {
      renderer_name: renderer?.name,
      data: files.data ?? "(given by the program)",
      eval_data: files.test,
      batch_size: batchSize,
      max_length: options.maxLength,
      n_teacher_targets: numTeacherTargets,
    },
  };
  try {
    return await trainBatches(complete, plan);
  } finally {
    await (await kept)?.close();
  }
}

/** The loop's options with everything that has a default. */
export function offPolicyLoop(options: OffPolicyOptions): CompleteLoopOptions<OffPolicyOptions> {
  return completeLoopOptions(options, { recipeName: "off_policy_distillation" });
}

/** Learning a distribution at every place. */
const softTargets: Objective = {
  submit: (training, data) => training.forwardBackward(data, "cross_entropy"),
  metrics(data, { lossFnOutputs }) {
    let kl = 0;
    let entropy = 0;
    let total = 0;
    let places = 0;
    for (const [index, { lossFnInputs }] of data.entries()) {
      const { data: weights, shape } = lossFnInputs["weights"]!.toDense();
      const logprobs = lossFnOutputs[index]!["logprobs"]!.toDense().data;
      const width = shape!.at(-1)!;
      for (let row = 0; row < weights.length; row += width) {
        const cells = Array.from({ length: width }, (_, slot) => Number(weights[row + slot]));
        const mass = cells.reduce((sum, cell) => sum + cell, 0);
        if (mass === 0) continue;
        places++;
        total += mass;
        for (const [slot, cell] of cells.entries()) {
          if (cell === 0) continue;
          kl += cell * (Math.log(cell / mass) - Number(logprobs[row + slot]));
          entropy -= cell * Math.log(cell / mass);
        }
      }
    }
    return {
      num_loss_tokens: places,
      forward_kl: total === 0 ? 0 : kl / total,
      teacher_entropy: total === 0 ? 0 : entropy / total,
    };
  },
};

/** The sequence that a datum was made of. */
function exampleOf({ modelInput, lossFnInputs }: Datum): SupervisedExample {
  const last = Number(lossFnInputs["target_tokens"]!.data.at(-1));
  const weights = lossFnInputs["weights"]!.toDense().data as ArrayLike<number>;
  return {
    input: modelInput.appendInt(last),
    weights: Float32Array.from([0, ...Array.from(weights)]),
  };
}
