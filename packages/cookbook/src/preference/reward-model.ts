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
import { chooseRenderer, findContextLength } from "../runs/index.js";
import {
  completeLoopOptions,
  defaultBatchSize,
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
import type { PreferenceDataOptions } from "./preference-data.js";

/** Says which of two completions is better: from -1, the first, over 0 to 1, the second. */
export type PreferenceModel = (
  comparison: Comparison,
  options?: { readonly signal?: AbortSignal | undefined },
) => Promise<number>;

const labels = ["A", "B", "Tie"] as const satisfies readonly PreferenceLabel[];

/** The conversation in which a model is asked to compare; its answer is a label. */
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

/** The tokens that stand for labels: the first of each, because one token is what a reward model answers with. */
export function labelTokens({ tokenizer }: Renderer): Readonly<Record<PreferenceLabel, number>> {
  const [A, B, Tie] = labels.map(
    (label) => tokenizer.encode(label, { addSpecialTokens: false })[0]!,
  );
  if (new Set([A, B, Tie]).size < labels.length) {
    throw new ArgumentError("renderer", `its tokenizer begins two of ${labels.join(", ")} alike`);
  }
  return { A: A!, B: B!, Tie: Tie! };
}

/** A decided comparison to learn from; its label is the one token that is trained. */
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

/** A reward model as a judge: how much more probable it finds the label of the second than that of the first. */
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

/** How a reward model is trained. */
export interface RewardModelOptions
  extends Omit<PreferenceDataOptions, "model" | "seed" | "maxLength">, BatchLoopOptions {
  /** Whether every comparison is learned in both orders; otherwise in one that chance decides. @default false */
  readonly bothOrders?: boolean | undefined;
  /** The highest rate; `auto` takes the one recommended for the model. @default 3e-4 */
  readonly learningRate?: number | "auto" | undefined;
}

/**
 * Trains a chat model to say which of two completions is better. `test/accuracy` is how often the most
 * probable label is the right one, on rows that are not trained.
 */
export async function trainRewardModel(options: RewardModelOptions): Promise<TrainResult> {
  const complete = completeLoopOptions(options, { recipeName: "reward_model", learningRate: 3e-4 });
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
  const { batchSize = defaultBatchSize(rows.length, options.numEpochs) } = options;
  return trainBatches(complete, {
    dataset: inBatches(rows, batchSize, seed),
    objective: nextTokens(tokenizer),
    evaluators: test.length === 0 ? [] : [labelEvaluator(test, renderer)],
    rendererName: renderer.name,
    config: {
      renderer_name: renderer.name,
      data: nameOf(data),
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
        `has ${length} tokens with both completions, but the model takes ${contextLength}`,
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
      `${batchSize} is more than the ${data.length} rows there are`,
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
