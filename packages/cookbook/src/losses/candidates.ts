import { ArgumentError, Datum, TensorData } from "tinker-ts";

/** What a reference model says of a sequence. */
export interface ReferenceSequence {
  /** The whole sequence. */
  readonly tokens: ArrayLike<number>;
  /** `topkPromptLogprobs` of the reference for these tokens: token and log-probability, the first missing. */
  readonly topk: readonly (readonly (readonly [token: number, logprob: number])[] | null)[];
  /** `promptLogprobs` of the reference; with them the token that stands there is always a candidate. */
  readonly logprobs?: readonly (number | null)[];
  /** 1 for tokens of the sequence that count, 0 for context; all count by default. */
  readonly weights?: ArrayLike<number>;
}

/** A datum that asks for log-probabilities of candidates, and what the reference says of them. */
export interface CandidateExample {
  /** Targets of shape [T, K]. */
  readonly datum: Datum;
  /** The reference's log-probabilities in the layout of the targets. */
  readonly reference: Float64Array;
  /** 0 for places without a candidate. */
  readonly exists: Uint8Array;
}

/** Makes targets of the reference's most probable tokens per position, for terms over candidates. */
export function candidateExample(sequence: ReferenceSequence): CandidateExample {
  const tokens = Array.from(sequence.tokens);
  if (tokens.length < 2)
    throw new ArgumentError("tokens", `must be at least two, got ${tokens.length}`);
  for (const name of ["topk", "logprobs", "weights"] as const) {
    const length = sequence[name]?.length ?? tokens.length;
    if (length !== tokens.length) {
      throw new ArgumentError(
        name,
        `must have one entry per token (${tokens.length}), got ${length}`,
      );
    }
  }
  const rows = tokens.slice(1).map((token, index) => candidatesAt(sequence, index + 1, token));
  const width = Math.max(...rows.map((row) => row.size), 1);
  const targets = new Int32Array(rows.length * width);
  const weights = new Float32Array(targets.length);
  const reference = new Float64Array(targets.length);
  const exists = new Uint8Array(targets.length);
  for (const [position, row] of rows.entries()) {
    for (const [slot, [token, logprob]] of [...row].entries()) {
      const at = position * width + slot;
      targets[at] = token;
      reference[at] = logprob;
      exists[at] = 1;
      weights[at] = sequence.weights?.[position + 1] ?? 1;
    }
  }
  const shape = [rows.length, width];
  const datum = new Datum({
    modelInput: tokens.slice(0, -1),
    lossFnInputs: {
      target_tokens: new TensorData({ data: targets, shape }),
      weights: new TensorData({ data: weights, shape }),
    },
  });
  return { datum, reference, exists };
}

function candidatesAt(
  { topk, logprobs }: ReferenceSequence,
  index: number,
  token: number,
): Map<number, number> {
  const row = new Map(topk[index] ?? []);
  const own = logprobs?.[index];
  if (own !== null && own !== undefined && !row.has(token)) row.set(token, own);
  return row;
}
