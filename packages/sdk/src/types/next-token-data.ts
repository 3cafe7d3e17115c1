import { ArgumentError } from "../errors/argument-error.js";
import { Datum } from "./datum.js";
import { ModelInput, type ModelInputLike } from "./model-input.js";
import { sampleProvenance } from "./provenance.js";
import { TensorData } from "./tensor-data.js";

/** Token ids. */
type Tokens = Int32Array | readonly number[];

/** Numbers, one per token. */
type PerToken = Float32Array | Float64Array | Uint8Array | readonly number[];

/** How an example is made of a prompt and its completion. */
export interface SupervisedDatumOptions {
  /** How much each token of the completion counts; by default each counts 1. */
  readonly weights?: PerToken | undefined;
}

/** What a policy datum needs of a sampled sequence. */
export interface PolicySequence {
  /** The drawn token ids. */
  readonly tokens: Tokens;
  /** The logprob with which each was drawn. */
  readonly logprobs: PerToken | null;
  /** The server's name of it. */
  readonly sequenceId?: string | undefined;
}

/** How an example is made of a prompt and a sampled sequence. */
export interface PolicyDatumOptions {
  /**
   * Logprobs of the prompt, as `computeLogprobs` gives them. The loss `dro` trains wherever they differ from
   * the model's, so it needs them; the other losses leave the prompt alone.
   */
  readonly promptLogprobs?: readonly (number | null)[] | undefined;
  /**
   * Names the sample in the datum, where the server has named it. The prompt must be the whole one that the sequence was
   * sampled from.
   * @default false
   */
  readonly provenance?: boolean | undefined;
}

/**
 * An example for `cross_entropy`: the prompt is read, the completion learned.
 *
 * Every position predicts the token after it, so the input lacks the last token and the targets the first.
 * A whole conversation is learned with an empty prompt and its mask as `weights`.
 */
export function supervisedDatum(
  prompt: ModelInputLike,
  completion: Tokens,
  options: SupervisedDatumOptions = {},
): Datum {
  const weights = options.weights ?? new Float32Array(completion.length).fill(1);
  checkLength("weights", weights, completion);
  const shifted = shift(prompt, completion);
  return new Datum({
    modelInput: shifted.input,
    lossFnInputs: { target_tokens: shifted.targets, weights: shifted.spread(weights) },
  });
}

/**
 * An example for `importance_sampling`, `ppo`, `cispo` and `dro`: a sampled sequence becomes more probable by a
 * positive advantage and less by a negative one. One number applies to every token, a list has one per token.
 */
export function policyDatum(
  prompt: ModelInputLike,
  sequence: PolicySequence,
  advantage: number | PerToken,
  options: PolicyDatumOptions = {},
): Datum {
  const { tokens, logprobs } = sequence;
  if (logprobs === null || logprobs === undefined) {
    throw new ArgumentError(
      "sequence.logprobs",
      "are missing; a policy is trained with those it sampled with",
    );
  }
  checkLength("sequence.logprobs", logprobs, tokens);
  const advantages =
    typeof advantage === "number" ? new Float32Array(tokens.length).fill(advantage) : advantage;
  checkLength("advantage", advantages, tokens);
  const shifted = shift(prompt, tokens);
  const datum = new Datum({
    modelInput: shifted.input,
    lossFnInputs: {
      target_tokens: shifted.targets,
      logprobs: shifted.spread(logprobs, options.promptLogprobs),
      advantages: shifted.spread(advantages),
    },
  });
  if (!options.provenance || !sequence.sequenceId) return datum;
  const promptLength = shifted.input.length - tokens.length + 1;
  return datum.withProvenance(sampleProvenance(sequence.sequenceId, promptLength, tokens.length));
}

/** A sequence in which every position predicts the next token. */
interface Shifted {
  readonly input: ModelInput;
  readonly targets: TensorData;
  /** Numbers of the completion at the positions that predict it; before them those of the prompt, else 0. */
  spread(completion: PerToken, prompt?: readonly (number | null)[]): TensorData;
}

function shift(promptLike: ModelInputLike, tokens: Tokens): Shifted {
  const prompt = ModelInput.from(promptLike);
  const completion = ModelInput.fromInts(tokens).toInts();
  const promptLength = prompt.length;
  const length = promptLength + completion.length - 1; // T: positions that predict something
  if (completion.length === 0 || length < 1) {
    throw new ArgumentError(
      "completion",
      "nothing to learn: there must be a token that another one stands before",
    );
  }
  const all = new Int32Array(length + 1); // pictures and audio have no tokens: 0, and nothing is learned there
  let position = 0;
  for (const chunk of prompt.chunks) {
    if (chunk.type === "encoded_text") all.set(chunk.tokens, position);
    position += new ModelInput({ chunks: [chunk] }).length;
  }
  all.set(completion, promptLength);
  return {
    input: withText(prompt, completion.subarray(0, -1)),
    targets: TensorData.fromTypedArray(all.subarray(1)), // [T]
    spread(numbers, ofPrompt = []) {
      const spread = new Float32Array(length + 1);
      if (ofPrompt.length > promptLength) {
        throw new ArgumentError(
          "promptLogprobs",
          `has ${ofPrompt.length} numbers for ${promptLength} tokens`,
        );
      }
      ofPrompt.forEach((value, index) => {
        spread[index] = value ?? 0;
      });
      spread.set(numbers, promptLength);
      return TensorData.fromTypedArray(spread.subarray(1)); // [T]
    },
  };
}

/** The input with text at its end, in one piece with text that is there. */
function withText(input: ModelInput, tokens: Int32Array): ModelInput {
  if (tokens.length === 0) return input;
  const last = input.chunks.at(-1);
  if (last?.type !== "encoded_text") return input.append({ type: "encoded_text", tokens });
  const joined = new Int32Array(last.tokens.length + tokens.length);
  joined.set(last.tokens);
  joined.set(tokens, last.tokens.length);
  return new ModelInput({
    chunks: [...input.chunks.slice(0, -1), { type: "encoded_text", tokens: joined }],
  });
}

function checkLength(field: string, list: ArrayLike<number>, tokens: ArrayLike<number>): void {
  if (list.length === tokens.length) return;
  throw new ArgumentError(
    field,
    `has ${list.length} numbers for ${tokens.length} tokens; give one for each`,
  );
}
