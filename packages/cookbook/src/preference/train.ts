import { type CustomLoss, type Datum, type SamplingClient, type TensorData } from "tinker-ts";
import type { Evaluator } from "../evaluation/index.js";
import { checkOptionNames, inRunFolder } from "../runs/index.js";
import {
  completeLoopOptions,
  trainBatches,
  type BatchLoopOptions,
  type CompleteLoopOptions,
  type Objective,
  type TrainResult,
} from "../supervised/index.js";
import {
  PreferenceDataset,
  preparePreferences,
  type PreferenceDataOptions,
  type PreferenceRow,
  type PreparedPreferences,
} from "./preference-data.js";
import {
  dpo,
  pairLoss,
  unpairedLoss,
  type PreferenceLoss,
  type UnpairedLoss,
} from "./preference-loss.js";
import { preferenceOptionNames } from "./option-names.js";
import { ReferenceLogprobs } from "./reference-logprobs.js";

/** Options of training on preferences. */
export interface PreferenceTrainOptions
  extends Omit<PreferenceDataOptions, "data" | "model" | "seed">, BatchLoopOptions {
  /** The preferences: as in `preparePreferences`, or its result. */
  readonly data: PreferenceDataOptions["data"] | PreparedPreferences;
  /** The loss: `dpo()`, `ipo()`, `simpo()` or `kto()`, each with its settings. @default dpo() */
  readonly loss?: PreferenceLoss | UnpairedLoss | undefined;
  /** The reference model: a path of sampler weights, or a base model. @default the weights that training starts from */
  readonly reference?: string | undefined;
  /** The peak learning rate. @default "auto": a tenth of the rate recommended for the model; 1e-5 for families without one */
  readonly learningRate?: number | "auto" | undefined;
}

/**
 * Trains a model on preferences (DPO and similar losses): everything from a file of comparisons to saved weights.
 *
 * Log-probabilities of the reference model are computed once and kept in the run's folder. A folder that holds a run with
 * the same data and settings is resumed; the result is the same as without the interruption.
 */
export async function train(options: PreferenceTrainOptions): Promise<TrainResult> {
  checkOptionNames(options, preferenceOptionNames);
  const complete = await inRunFolder(preferenceLoop(options));
  const { data, loss = dpo() } = options;
  const prepared =
    typeof data === "object" && "dataset" in data
      ? data
      : await preparePreferences({ ...options, data, unpaired: isUnpaired(loss) });
  const { dataset, test, renderer, batchSize, files } = prepared;
  const references = loss.needsReference ? await openReferences(complete) : undefined;
  const judge = new Judge(loss, references);
  return trainBatches(complete, {
    dataset: {
      batchesPerEpoch: dataset.batchesPerEpoch,
      async batch(epoch, index) {
        const batch = dataset.batch(epoch, index);
        await references?.of(batch);
        return batch;
      },
    },
    numEpochs: prepared.numEpochs,
    warnings: prepared.warnings,
    notCompared: prepared.dataHash === undefined ? ["data"] : [],
    objective: judge.objectiveOn(dataset),
    evaluators: test.length === 0 ? [] : [judge.evaluator(test)],
    rendererName: renderer.name,
    config: {
      renderer_name: renderer.name,
      data: files.data ?? "(given by the program)",
      data_hash: prepared.dataHash,
      eval_data: files.test,
      test_size: options.testSize,
      batch_size: batchSize,
      max_length: options.maxLength,
      loss: loss.name,
      [`${loss.name}_beta`]: loss.beta,
      loss_settings: loss.settings,
      reference: identityOf(complete),
    },
  });
}

/** The options of the loop with their defaults. */
export function preferenceLoop(options: PreferenceTrainOptions): Options {
  return completeLoopOptions(
    options,
    { recipeName: "preference" },
    { share: 0.1, otherwise: 1e-5 },
  );
}

/** True for a loss on single completions. */
export function isUnpaired(loss: PreferenceLoss | UnpairedLoss): loss is UnpairedLoss {
  return "atAll" in loss;
}

type Options = CompleteLoopOptions<PreferenceTrainOptions>;

/** The reference by name: as chosen, else the weights that training starts from. */
function identityOf({ reference, loadCheckpointPath, model }: Options): string {
  return reference ?? loadCheckpointPath ?? model;
}

function openReferences(options: Options): Promise<ReferenceLogprobs> {
  const { folder, signal } = options;
  return ReferenceLogprobs.open({
    folder,
    identity: identityOf(options),
    open: () => openReference(options),
    signal,
  });
}

async function openReference(options: Options): Promise<SamplingClient> {
  const { service, reference, loadCheckpointPath, model, signal } = options;
  if (reference === undefined && loadCheckpointPath !== undefined) {
    const frozen = await service.createTrainingClientFromState(loadCheckpointPath, { signal });
    return frozen.saveWeightsAndGetSamplingClient();
  }
  if (reference?.startsWith("tinker://")) {
    return service.createSamplingClient({ modelPath: reference, signal });
  }
  return service.createSamplingClient({ baseModel: reference ?? model, signal });
}

/** Computes a loss and its metrics on data, in training and in evaluation. */
class Judge {
  readonly #loss: PreferenceLoss | UnpairedLoss;
  readonly #references: ReferenceLogprobs | undefined;

  constructor(loss: PreferenceLoss | UnpairedLoss, references: ReferenceLogprobs | undefined) {
    this.#loss = loss;
    this.#references = references;
  }

  objectiveOn(dataset: PreferenceDataset): Objective {
    return {
      lossMetric: `${this.#loss.name}_loss`,
      submit: (training, data, { epoch, batch }) =>
        training.forwardBackwardCustom(data, async (datums, logprobs) =>
          this.#judge(datums, logprobs, dataset.rowsOf(epoch, batch)),
        ),
      metrics: (_data, { metrics }, { epoch, batch }) => {
        const { length } = dataset.rowsOf(epoch, batch);
        return { ...lossMetrics(metrics), ...this.#countOf(length) };
      },
    };
  }

  /** The loss and its metrics on held-out rows. */
  evaluator(rows: readonly PreferenceRow[]): Evaluator {
    const data = rows.flatMap((row) => row.data);
    return {
      name: "test",
      evaluate: async ({ training, signal }) => {
        const { lossFnOutputs } = await training.forward(data, "cross_entropy", { signal });
        const logprobs = lossFnOutputs.map((output) => output["logprobs"]!);
        const { metrics } = await this.#judge(data, logprobs, rows);
        return Object.fromEntries(
          Object.entries(metrics).map(([name, value]) => [`test/${name}`, value]),
        );
      },
    };
  }

  async #judge(
    data: readonly Datum[],
    logprobs: readonly TensorData[],
    rows: readonly PreferenceRow[],
  ): Promise<CustomLoss & { readonly metrics: Record<string, number> }> {
    const references = await this.#references?.of(data);
    if (!isUnpaired(this.#loss)) return pairLoss(this.#loss, data, logprobs, references);
    const desirable = rows.flatMap((row) => row.desirable);
    return unpairedLoss(this.#loss, data, logprobs, references, desirable);
  }

  #countOf(rows: number): Record<string, number> {
    return isUnpaired(this.#loss) ? { num_completions: rows } : { num_pairs: rows };
  }
}

/** Metrics of the loss, without those of the server, which has another loss. */
function lossMetrics(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.includes(":")));
}
