/** Log-probabilities and weights of one datum, position by position. */
export interface ScoredDatum {
  readonly logprobs: ArrayLike<number>;
  readonly weights: ArrayLike<number>;
}

/** A scored datum with the tokens that were predicted. */
export interface ScoredTokens extends ScoredDatum {
  readonly targets: ArrayLike<number | bigint>;
}

/** What bits per byte need of a tokenizer; a `Tokenizer` is one. */
export interface ByteTokenizer {
  readonly specialTokens: ReadonlyMap<string, number>;
  decode(ids: Iterable<number>): string;
}

/**
 * The mean negative log-likelihood by weight over all data together; NaN when nothing has a weight. With
 * weights that add up to 1 per datum this is the mean of the data's means.
 */
export function meanNll(data: readonly ScoredDatum[]): number {
  let sum = 0;
  let total = 0;
  for (const { logprobs, weights } of data) {
    for (let index = 0; index < weights.length; index++) {
      const weight = weights[index]!;
      // A position without weight may have any log-probability, also minus infinity.
      if (weight === 0) continue;
      sum -= logprobs[index]! * weight;
      total += weight;
    }
  }
  return total === 0 ? Number.NaN : sum / total;
}

/** The mean over tokens that have a weight, whatever its size; NaN when there is none. */
export function tokenNll(data: readonly ScoredDatum[]): number {
  return meanNll(
    data.map(({ logprobs, weights }) => ({
      logprobs,
      weights: Array.from(weights, (weight) => (weight > 0 ? 1 : 0)),
    })),
  );
}

/**
 * The bits that a byte of the learned text takes, which models with different tokenizers can be compared by.
 * Special tokens do not count; NaN when there is no text.
 */
export function bitsPerByte(data: readonly ScoredTokens[], tokenizer: ByteTokenizer): number {
  const special = new Set(tokenizer.specialTokens.values());
  const encoder = new TextEncoder();
  let nats = 0;
  let byteCount = 0;
  for (const { logprobs, weights, targets } of data) {
    let run: number[] = [];
    for (let index = 0; index <= weights.length; index++) {
      const token = Number(targets[index]);
      if (index < weights.length && weights[index]! > 0 && !special.has(token)) {
        nats -= logprobs[index]!;
        run.push(token);
      } else if (run.length > 0) {
        byteCount += encoder.encode(tokenizer.decode(run)).length;
        run = [];
      }
    }
  }
  return byteCount === 0 ? Number.NaN : nats / (Math.LN2 * byteCount);
}
