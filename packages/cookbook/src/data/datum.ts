import { ArgumentError, Datum, ModelInput, type ModelInputChunk } from "tinker-ts";
import type { SupervisedExample } from "../renderers/index.js";
import { DataError } from "./data-error.js";

/** How the weights of an example are normalized. */
export type WeightReduction = "none" | "mean";

/** Options of `toDatum`. */
export interface DatumOptions {
  /** The maximum length of a sequence before it is shifted; longer ones are cut at the end. @default no limit */
  readonly maxLength?: number | undefined;
  /**
   * `mean` divides the weights by their sum, so that every example counts the same; `none` keeps them, so that every
   * token counts the same.
   * @default "mean"
   */
  readonly reduction?: WeightReduction | undefined;
}

/** An input and the target of each of its positions. */
export interface ShiftedInput {
  /** All but the last position. */
  readonly input: ModelInput;
  /** The tokens from the second on; 0 where a picture is. */
  readonly targets: Int32Array;
}

/** A training datum for next-token prediction: the sequence cut, shifted by one, its weights reduced. */
export function toDatum(example: SupervisedExample, options: DatumOptions = {}): Datum {
  const { maxLength, reduction = "mean" } = options;
  const chunks = trimChunks(example.input.chunks, maxLength ?? Number.POSITIVE_INFINITY);
  const { input, targets } = shift(new ModelInput({ chunks }));
  const weights = example.weights.slice(1, targets.length + 1);
  if (weights.length < targets.length) {
    throw new DataError(
      `${example.weights.length} weights do not reach the end of ${targets.length + 1} positions`,
    );
  }
  return new Datum({
    modelInput: input,
    lossFnInputs: {
      target_tokens: BigInt64Array.from(targets, BigInt),
      weights: reduceWeights(weights, reduction),
    },
  });
}

/** Splits a sequence into inputs and targets. */
export function shift(sequence: ModelInput): ShiftedInput {
  const { chunks, length } = sequence;
  const last = chunks.at(-1);
  if (last?.type !== "encoded_text" || length < 2) {
    const found = length < 2 ? `it has ${length}` : `it ends with a chunk of type ${last?.type}`;
    throw new DataError(`a sequence to learn ends with text and has two positions; ${found}`);
  }
  const all = new Int32Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    if (chunk.type === "encoded_text") all.set(chunk.tokens, offset);
    offset += lengthOf(chunk);
  }
  const rest = last.tokens.subarray(0, -1);
  const kept = chunks.slice(0, -1);
  const input = new ModelInput({
    chunks: rest.length === 0 ? kept : [...kept, { type: "encoded_text", tokens: rest }],
  });
  return { input, targets: all.subarray(1) };
}

/** The weights of a datum. */
export function weightsOf(datum: Datum): ArrayLike<number> {
  return (datum.lossFnInputs["weights"]?.data ?? []) as ArrayLike<number>;
}

/** Cuts from the right end: text by tokens, pictures whole; drops empty texts and final pictures. */
function trimChunks(chunks: readonly ModelInputChunk[], maxLength: number): ModelInputChunk[] {
  const kept = [...chunks];
  let excess = kept.reduce((sum, chunk) => sum + lengthOf(chunk), 0) - maxLength;
  while (excess > 0) {
    const last = kept.pop()!;
    const length = lengthOf(last);
    if (last.type === "encoded_text" && length > excess) {
      kept.push({ ...last, tokens: last.tokens.subarray(0, length - excess) });
    }
    excess -= length;
  }
  const full = kept.filter((chunk) => chunk.type !== "encoded_text" || chunk.tokens.length > 0);
  while (full.length > 0 && full.at(-1)!.type !== "encoded_text") full.pop();
  return full;
}

function reduceWeights(weights: Float32Array, reduction: WeightReduction): Float32Array {
  if (reduction === "none") return weights;
  if (reduction !== "mean") {
    throw new ArgumentError("reduction", `"${String(reduction)}" is neither "none" nor "mean"`);
  }
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return sum > 0 ? weights.map((weight) => weight / sum) : weights;
}

function lengthOf(chunk: ModelInputChunk): number {
  return chunk.type === "encoded_text"
    ? chunk.tokens.length
    : new ModelInput({ chunks: [chunk] }).length;
}
