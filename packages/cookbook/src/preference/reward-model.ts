import { ArgumentError, Datum, ModelInput, type SamplingClient } from "tinker-ts";
import {
  badRowsError,
  DataError,
  seededRandom,
  shuffledBatch,
  splitTest,
  type BadRow,
  type Dataset,
  type Placed,
  type RowSource,
} from "../data/index.js";
import type { Evaluator } from "../evaluation/index.js";
import type { Message, Renderer } from "../renderers/index.js";
import {
  checkOptionNames,
  chooseRenderer,
  contentHash,
  enoughEpochs,
  findContextLength,
  inRunFolder,
} from "../runs/index.js";
import {
  completeLoopOptions,
  defaultBatchSize,
  fewRowsWarning,
  nextTokens,
  trainBatches,
  type BatchLoopOptions,
  type TrainResult,
} from "../supervised/index.js";
import {
  loadComparisons,
  swapped,
  type Comparison,
  type LabeledComparison,
  type PreferenceLabel,
} from "./comparison.js";
import { rewardOptionNames } from "./option-names.js";
import type { PreferenceDataOptions } from "./preference-data.js";

/** Compares two completions: from -1 for the first, over 0, to 1 for the second. */
export type PreferenceModel = (
  comparison: Comparison,
  options?: { readonly signal?: AbortSignal | undefined },
) => Promise<number>;

const labels = ["A", "B", "Tie"] as const satisfies readonly PreferenceLabel[];

/** The conversation that asks a model to compare; its answer is a label. */
export function comparisonMessages({ prompt, completionA, completionB }: Comparison): Message[] {
  const title = (text: string): Message => ({ role: "system", content: `==== ${text} ====` });
  return [
    ...prompt,
    title("Completion A"),
    ...completionA,
    title("Completion B"),
    ...completionB,
    title("Preference"),
  ];
}

/** The first token of each label, because a reward model answers with one token. */
export function labelTokens({ tokenizer }: Renderer): Readonly<Record<PreferenceLabel, number>> {
  const [A, B, Tie] = labels.map(
    (label) => tokenizer.encode(label, { addSpecialTokens: false })[0]!,
  );
  if (new Set([A, B, Tie]).size < labels.length) {
    throw new ArgumentError("renderer", `its tokenizer begins two of ${labels.join(", ")} alike`);
  }
  return { A: A!, B: B!, Tie: Tie! };
}

/** A labeled comparison as a datum; the label is its only trained token. */
export function comparisonDatum(comparison: LabeledComparison, renderer: Renderer): Datum {
  const modelInput = renderer.buildGenerationPrompt(comparisonMessages(comparison));
  const target = labelTokens(renderer)[comparison.label];
  const tokens = modelInput.toInts();
  return new Datum({
    modelInput,
    lossFnInputs: {
      target_tokens: BigInt64Array.from([...tokens.slice(1), target], BigInt),
      weights: Float32Array.from(tokens, (_, at) => (at === tokens.length - 1 ? 1 : 0)),
    },
  });
}

/** A reward model as a judge: the probability of the second label less that of the first. */
export function chatPreferenceModel(sampling: SamplingClient, renderer: Renderer): PreferenceModel {
  const tokens = labelTokens(renderer);
  return async (comparison, { signal } = {}) => {
    const prompt = renderer.buildGenerationPrompt(comparisonMessages(comparison));
    const { topkPromptLogprobs } = await sampling.sample({
      // What is asked for is the opinion before the last token, whichever that is.
      prompt: prompt.appendInt(tokens.A),
      samplingParams: { maxTokens: 1, temperature: 0 },
      includePromptLogprobs: true,
      topkPromptLogprobs: 20,
      ...(signal && { signal }),
    });
    const last = new Map(topkPromptLogprobs?.at(-1) ?? []);
    const probabilityOf = (token: number): number => Math.exp(last.get(token) ?? -Infinity);
    return probabilityOf(tokens.B) - probabilityOf(tokens.A);
  };
}

/** Options of training a reward model. */
export interface RewardModelOptions
  extends Omit<PreferenceDataOptions, "model" | "seed" | "maxLength">, BatchLoopOptions {
  /** Whether every comparison is learned in both orders, instead of in a random one. @default false */
  readonly bothOrders?: boolean | undefined;
  /** The peak learning rate. @default "auto": the rate recommended for the model; 3e-4 for families without one */
  readonly learningRate?: number | "auto" | undefined;
}

/**
 * Trains a chat model to compare two completions. `test/accuracy` is the share of held-out rows with the right label as the
 * most probable one.
 */
export async function trainRewardModel(options: RewardModelOptions): Promise<TrainResult> {
  checkOptionNames(options, rewardOptionNames);
  const complete = await inRunFolder(
    completeLoopOptions(options, { recipeName: "reward_model" }, { otherwise: 3e-4 }),
  );
  const { service, model, signal, seed, data, evalData, testSize = 0 } = complete;
  const { bothOrders = false, badRows: policy = "fail" } = options;
  const loaded = await loadComparisons(data, options);
  const loadedTest = evalData === undefined ? undefined : await loadComparisons(evalData, options);
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await sampling.getTokenizer({ signal });
  const checkpointPath = options.loadCheckpointPath;
  const renderer = await chooseRenderer({ ...complete, tokenizer, checkpointPath });
  const contextLength = await findContextLength(complete);
  const split = splitTest(loaded.rows, testSize, seed);
  const random = seededRandom(seed);
  const ordered = split.train.flatMap((row) => {
    const flips = random() < 0.5;
    return bothOrders ? [row, swapped(row)] : [flips ? swapped(row) : row];
  });
  const rendering = { renderer, contextLength, policy };
  const rows = renderComparisons(ordered, rendering);
  const test = renderComparisons(loadedTest?.rows ?? split.test, rendering);
  const { batchSize = defaultBatchSize(rows.length) } = options;
  const dataset = inBatches(rows, batchSize, seed);
  return trainBatches(complete, {
    dataset,
    numEpochs: enoughEpochs(dataset.batchesPerEpoch),
    warnings: fewRowsWarning(split.train.length),
    objective: nextTokens(tokenizer),
    evaluators: test.length === 0 ? [] : [labelEvaluator(test, renderer)],
    rendererName: renderer.name,
    config: {
      renderer_name: renderer.name,
      data: nameOf(data),
      data_hash: contentHash(loaded.rows),
      eval_data: evalData === undefined ? undefined : nameOf(evalData),
      test_size: testSize,
      batch_size: batchSize,
      both_orders: bothOrders,
    },
  });
}

function renderComparisons(
  comparisons: readonly (LabeledComparison & Placed)[],
  options: {
    readonly renderer: Renderer;
    readonly contextLength: number | undefined;
    readonly policy: "fail" | "skip";
  },
): Datum[] {
  const { renderer, contextLength = Number.POSITIVE_INFINITY, policy } = options;
  const badRows: BadRow[] = [];
  const data = comparisons.flatMap((comparison, index) => {
    try {
      const datum = comparisonDatum(comparison, renderer);
      const { length } = datum.modelInput;
      // The label stands at the end: cutting would cut it off.
      if (length <= contextLength) return [datum];
      throw new DataError(
        `${length} tokens with both completions exceed the model's context length (${contextLength})`,
      );
    } catch (error) {
      const problem = error instanceof DataError ? error.problem : (error as Error).message;
      badRows.push({ place: comparison.place ?? `row ${index + 1}`, problem });
      return [];
    }
  });
  const isHopeless = comparisons.length > 0 && data.length === 0;
  if (badRows.length > 0 && (policy === "fail" || isHopeless)) throw badRowsError(badRows);
  return data;
}

function inBatches(data: readonly Datum[], batchSize: number, seed: number): Dataset {
  if (data.length < batchSize) {
    throw new ArgumentError(
      "batchSize",
      `${batchSize} exceeds the number of rows (${data.length})`,
    );
  }
  return {
    batchesPerEpoch: Math.floor(data.length / batchSize),
    batch: (epoch, index) => shuffledBatch(data, { batchSize, seed, epoch, index }),
  };
}

/** How often the label that the model finds most probable is the right one. */
function labelEvaluator(data: readonly Datum[], renderer: Renderer): Evaluator {
  const known = Object.values(labelTokens(renderer));
  const rights = data.map(({ lossFnInputs }) => Number(lossFnInputs["target_tokens"]!.data.at(-1)));
  // One position per label: the same prompt is read once for each of them.
  const asked = data.flatMap(({ modelInput }) =>
    known.map((token) => {
      const targets = [...modelInput.toInts().slice(1), token];
      return new Datum({
        modelInput: ModelInput.from(modelInput),
        lossFnInputs: { target_tokens: targets, weights: new Float32Array(targets.length) },
      });
    }),
  );
  return {
    name: "test",
    async evaluate({ training, signal }) {
      const { lossFnOutputs } = await training.forward(asked, "cross_entropy", { signal });
      const logprobs = lossFnOutputs.map((output) => Number(output["logprobs"]!.data.at(-1)));
      const found = rights.map((right, row) => {
        const own = logprobs.slice(row * known.length, (row + 1) * known.length);
        const best = own.indexOf(Math.max(...own));
        return { isRight: known[best] === right, nll: -own[known.indexOf(right)]! };
      });
      const mean = (values: readonly number[]): number =>
        values.reduce((sum, value) => sum + value, 0) / values.length;
      return {
        "test/accuracy": mean(found.map(({ isRight }) => Number(isRight))),
        "test/nll": mean(found.map(({ nll }) => nll)),
      };
    },
  };
}

function nameOf(source: RowSource): string {
  return typeof source === "string" ? source : "(given by the program)";
}
