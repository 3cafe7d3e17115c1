import type { Datum, ModelInput, SamplingClient } from "tinker-ts";
import { inParallel, nllEvaluator } from "../evaluation/index.js";
import type { Dataset } from "../data/index.js";
import { checkOptionNames, inRunFolder, pickOptions } from "../runs/index.js";
import type { SupervisedExample } from "../renderers/index.js";
import {
  completeLoopOptions,
  isPrepared,
  prepareData,
  trainBatches,
  trainOptionNames,
  type BatchLoopOptions,
  type CompleteLoopOptions,
  type DataOptions,
  type Objective,
  type PreparedData,
  type TrainResult,
} from "../supervised/index.js";
import { KeptAnswers } from "./kept-answers.js";
import { distillOptionNames } from "./option-names.js";
import { softTargetDatum, type TeacherTopK } from "./soft-targets.js";
import { toTeacher, type Teacher } from "./teacher.js";

/** Options of off-policy distillation. */
export interface OffPolicyOptions
  extends Omit<DataOptions, "data" | "model" | "seed">, BatchLoopOptions {
  /** Conversations in the forms of `train sft`, or the result of `prepareData`. */
  readonly data: DataOptions["data"] | PreparedData;
  /** The teacher model; it must share the student's tokenizer. */
  readonly teacher: SamplingClient | Teacher;
  /** The number of the teacher's most probable tokens to learn at every position. @default 20 */
  readonly numTeacherTargets?: number | undefined;
  /** The number of sequences that the teacher scores at once. @default 64 */
  readonly teacherConcurrency?: number | undefined;
  /**
   * Whether the teacher's distributions are kept in the run's folder, so that it scores no sequence twice.
   * @default true for more than one epoch
   */
  readonly keepsAnswers?: boolean | undefined;
}

/**
 * Off-policy distillation: at every learned position of given conversations the student learns the teacher's
 * distribution over its most probable tokens, instead of one token. `forward_kl` is KL(teacher, student) over these
 * tokens, by the weights of the examples.
 */
export async function trainOffPolicy(options: OffPolicyOptions): Promise<TrainResult> {
  checkOptionNames(options, distillOptionNames["off-policy"]);
  const complete = await inRunFolder(offPolicyLoop(options));
  const { numTeacherTargets = 20, teacherConcurrency = 64, signal } = options;
  const { data } = options;
  const prepared = isPrepared(data)
    ? data
    : await prepareData({ ...pickOptions(complete, trainOptionNames), data });
  const { numEpochs = prepared.numEpochs ?? 1 } = options;
  const { keepsAnswers = numEpochs > 1 } = options;
  const { dataset, tokenizer, renderer, test, batchSize, files } = prepared;
  const teacher = toTeacher(options.teacher);
  let kept: Promise<KeptAnswers> | undefined;
  const ask = async (sequence: ModelInput): Promise<TeacherTopK> => {
    const read = () => teacher.topLogprobs(sequence, numTeacherTargets, { signal });
    if (!keepsAnswers) return read();
    // Opened late: by then the loop has claimed the folder.
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
    numEpochs,
    warnings: prepared.warnings,
    notCompared: [...(prepared.dataHash === undefined ? ["data"] : []), "teacher"],
    objective: softTargets,
    evaluators: test.length === 0 ? [] : [nllEvaluator(test, { tokenizer })],
    rendererName: renderer?.name,
    config: {
      renderer_name: renderer?.name,
      data: files.data ?? "(given by the program)",
      data_hash: prepared.dataHash,
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

/** The options of the loop with their defaults. */
export function offPolicyLoop(options: OffPolicyOptions): CompleteLoopOptions<OffPolicyOptions> {
  return completeLoopOptions(options, { recipeName: "off_policy_distillation" });
}

/** Learning a distribution at every position. */
const softTargets: Objective = {
  lossMetric: "forward_kl",
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

/** The sequence of a datum, before it was shifted. */
function exampleOf({ modelInput, lossFnInputs }: Datum): SupervisedExample {
  const last = Number(lossFnInputs["target_tokens"]!.data.at(-1));
  const weights = lossFnInputs["weights"]!.toDense().data as ArrayLike<number>;
  return {
    input: modelInput.appendInt(last),
    weights: Float32Array.from([0, ...Array.from(weights)]),
  };
}
