import type { ConstrainedText } from "../constrain/constraint.js";
import { isAllowed, type TokenMask } from "../constrain/token-mask.js";
import { at } from "../util/arrays.js";
import type { DecodedRow } from "./decoder.js";
import type { CheckedSampleOptions } from "./request.js";

/** The distribution that a token is drawn from. */
export type DrawnRow = Pick<DecodedRow, "logits" | "probabilities">;

/** Below this share of probability, single precision leaves too little to draw from. */
const leastShare = 1e-12;

/**
 * Changes the model's distribution by the options of a request: penalties, biases, a minimum
 * probability, a minimum length, a constraint.
 *
 * Only requests with one of these options have a shaper. Where tokens are only excluded, the
 * probabilities of the others are in proportion to those that the graph has computed; where logits change,
 * the softmax is computed here.
 */
export class RowShaper {
  readonly #options: CheckedSampleOptions;
  readonly #constrained: ConstrainedText | undefined;
  readonly #changesLogits: boolean;
  readonly #inPrompt: ReadonlySet<number>;
  readonly #counts = new Map<number, number>();
  #length = 0;

  private constructor(
    options: CheckedSampleOptions,
    constrained: ConstrainedText | undefined,
    changesLogits: boolean,
  ) {
    this.#options = options;
    this.#constrained = constrained;
    this.#changesLogits = changesLogits;
    this.#inPrompt = options.repetitionPenalty === 1 ? new Set() : new Set(options.prompt);
  }

  /** The shaper that a request needs; undefined if the model's distribution does not change. */
  static for(
    options: CheckedSampleOptions,
    constrained: ConstrainedText | undefined,
  ): RowShaper | undefined {
    const { frequencyPenalty, presencePenalty, repetitionPenalty, logitBias } = options;
    const changesLogits =
      frequencyPenalty !== 0 ||
      presencePenalty !== 0 ||
      repetitionPenalty !== 1 ||
      logitBias.size > 0;
    const takesTokens =
      options.minP > 0 || (options.minTokens > 0 && options.stopTokens.size > 0) || constrained;
    return changesLogits || takesTokens
      ? new RowShaper(options, constrained, changesLogits)
      : undefined;
  }

  /** Whether the constraint is fulfilled and there is no stop token to draw. */
  get isOver(): boolean {
    return this.#constrained?.mustEnd === true && this.#options.stopTokens.size === 0;
  }

  /** The distribution of the next token; valid until the next call of any shaper. */
  shape(row: DecodedRow): DrawnRow {
    const mask = this.#constrained?.mask();
    const shaped = scratchOf(row.logits.length);
    shaped.logits.set(row.logits);
    if (this.#changesLogits) this.#changeLogits(shaped.logits);
    const isGreedy = this.#options.temperature === 0 || this.#options.topK === 1;
    if (mask !== undefined) this.#takeMasked(shaped.logits, mask);
    if (this.#mustNotEnd(mask)) {
      for (const token of this.#options.stopTokens) shaped.logits[token] = -Infinity;
    }
    if (isGreedy) return shaped;
    if (this.#changesLogits || !restrict(row.probabilities, shaped)) {
      softmax(shaped, this.#options.temperature);
    }
    if (this.#options.minP > 0) takeUnlikely(shaped, this.#options.minP);
    return shaped;
  }

  /** Records the drawn token. */
  push(token: number): void {
    this.#length += 1;
    this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    if (this.#constrained?.allows(token) === true) this.#constrained.push(token);
  }

  /** A constraint that allows only the end overrides the minimum length. */
  #mustNotEnd(mask: TokenMask | undefined): boolean {
    return this.#length < this.#options.minTokens && mask?.count !== 0;
  }

  #changeLogits(logits: Float32Array): void {
    const { frequencyPenalty, presencePenalty, repetitionPenalty, logitBias } = this.#options;
    if (repetitionPenalty !== 1) {
      const repeat = (token: number): void => {
        const logit = at(logits, token);
        logits[token] = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty;
      };
      for (const token of this.#inPrompt) repeat(token);
      for (const token of this.#counts.keys()) if (!this.#inPrompt.has(token)) repeat(token);
    }
    for (const [token, count] of this.#counts) {
      logits[token] = at(logits, token) - frequencyPenalty * count - presencePenalty;
    }
    for (const [token, bias] of logitBias) logits[token] = at(logits, token) + bias;
  }

  #takeMasked(logits: Float32Array, mask: TokenMask): void {
    const { stopTokens } = this.#options;
    const ends =
      this.#constrained?.canEnd === true
        ? [...stopTokens].map((token) => [token, at(logits, token)] as const)
        : [];
    keepAllowed(logits, mask);
    for (const [token, logit] of ends) logits[token] = logit;
  }
}

function keepAllowed(logits: Float32Array, mask: TokenMask): void {
  if (mask.few !== null) {
    const kept = Array.from(mask.few, (token) => at(logits, token));
    logits.fill(-Infinity);
    for (const [index, token] of mask.few.entries()) logits[token] = at(kept, index);
    return;
  }
  const { bits } = mask;
  for (let word = 0; word < bits.length; word++) {
    const allowed = bits[word] ?? 0;
    if (allowed === 0xffffffff) continue;
    const end = Math.min(logits.length, (word + 1) * 32);
    for (let token = word * 32; token < end; token++) {
      if (!isAllowed(mask, token)) logits[token] = -Infinity;
    }
  }
}

/** Renormalizes the probabilities of the remaining tokens; false if too little is left. */
function restrict(given: Float32Array, { logits, probabilities }: DrawnRow): boolean {
  let sum = 0;
  for (let token = 0; token < logits.length; token++) {
    const probability = logits[token] === -Infinity ? 0 : (given[token] ?? 0);
    probabilities[token] = probability;
    sum += probability;
  }
  if (sum < leastShare) return false;
  scale(probabilities, sum);
  return true;
}

function softmax({ logits, probabilities }: DrawnRow, temperature: number): void {
  let top = -Infinity;
  for (const logit of logits) if (logit > top) top = logit;
  let sum = 0;
  for (let token = 0; token < logits.length; token++) {
    const logit = logits[token] ?? -Infinity;
    const weight = logit === -Infinity ? 0 : Math.exp((logit - top) / temperature);
    probabilities[token] = weight;
    sum += weight;
  }
  scale(probabilities, sum);
}

/** Excludes tokens less likely than a fraction of the most likely one. */
function takeUnlikely({ probabilities }: DrawnRow, minP: number): void {
  let top = 0;
  for (const probability of probabilities) if (probability > top) top = probability;
  const least = top * minP;
  let sum = 0;
  for (let token = 0; token < probabilities.length; token++) {
    const probability = probabilities[token] ?? 0;
    if (probability < least) probabilities[token] = 0;
    else sum += probability;
  }
  scale(probabilities, sum);
}

function scale(probabilities: Float32Array, sum: number): void {
  const factor = 1 / sum;
  for (let token = 0; token < probabilities.length; token++) {
    probabilities[token] = (probabilities[token] ?? 0) * factor;
  }
}

/** Drawing is synchronous, so one row of memory is enough for all. */
let scratch: DrawnRow = { logits: new Float32Array(), probabilities: new Float32Array() };

function scratchOf(vocabSize: number): DrawnRow {
  if (scratch.logits.length !== vocabSize) {
    scratch = {
      logits: new Float32Array(vocabSize),
      probabilities: new Float32Array(vocabSize),
    };
  }
  return scratch;
}
