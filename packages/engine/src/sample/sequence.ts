import { RandomStream } from "../util/random.js";
import type { FrozenAdapter } from "./adapter-set.js";
import type { Constraint } from "../constrain/constraint.js";
import type { DecodedRow } from "./decoder.js";
import { largest, pickToken } from "./pick-token.js";
import type { CheckedSampleOptions } from "./request.js";
import { RowShaper } from "./row-shaper.js";
import { StopMatcher, type TokenText } from "./stop-matcher.js";
import { EngineError } from "../errors.js";
import { at } from "../util/arrays.js";
import { Deferred } from "../util/turns.js";
import type { DrawnToken } from "./decode-group.js";
import type { PromptPass, PromptResult } from "./prompt-pass.js";

/** Why a sample ended. */
export type StopReason = "stop" | "length";

/** One generated continuation. */
export interface Sample {
  readonly tokens: Int32Array;
  /**
   * Log-probability of each token when it was drawn: log softmax(logits / temperature), at temperature 0
   * log softmax(logits). Top-k and top-p do not change it.
   */
  readonly logprobs: Float32Array;
  readonly stopReason: StopReason;
  /** For each token the most likely ones and the requested ones; absent unless requested. */
  readonly topLogprobs?: readonly TopTokens[];
}

/** A token as it was drawn. */
export interface Drawn {
  readonly token: number;
  readonly logprob: number;
  /** Alternatives; absent unless requested. */
  readonly top?: TopTokens;
}

/**
 * A sample in the making.
 *
 * Its random stream is fixed by seed and index, and one number is drawn per token: other sequences have
 * no influence.
 */
export class Sequence {
  readonly adapter: FrozenAdapter;
  readonly index: number;
  readonly options: CheckedSampleOptions;
  readonly #tokens: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #random: RandomStream;
  readonly #stops: StopMatcher | undefined;
  readonly #shaper: RowShaper | undefined;
  readonly #tops: TopTokens[] = [];
  readonly #maxTokens: number;
  #stopReason: StopReason | undefined;
  #failure: unknown;

  constructor(
    options: CheckedSampleOptions,
    adapter: FrozenAdapter,
    index: number,
    contextLength: number,
    text: TokenText | undefined,
    constraint?: Constraint,
  ) {
    this.options = options;
    this.adapter = adapter;
    this.index = index;
    this.#random = new RandomStream(options.seed, options.firstSample + index);
    this.#maxTokens = Math.min(options.maxTokens, contextLength - options.prompt.length);
    if (options.stopStrings.length > 0 && text !== undefined) {
      this.#stops = new StopMatcher(options.stopStrings, text);
    }
    this.#shaper = RowShaper.for(options, constraint?.begin());
    if (this.#maxTokens <= 0) this.#stopReason = "length";
  }

  get ended(): boolean {
    return this.#stopReason !== undefined || this.#failure !== undefined;
  }

  /** Why it could not be continued, if so. */
  get failure(): unknown {
    return this.#failure;
  }

  /** The prompt with what has been drawn since. */
  get tokens(): Int32Array {
    return Int32Array.of(...this.options.prompt, ...this.#tokens);
  }

  /** The token that the model reads next. */
  get lastToken(): number {
    const token = this.#tokens.at(-1);
    if (token === undefined) throw new Error("the sequence has no token yet");
    return token;
  }

  /** Draws the next token and returns it with its log-probability, or ends without one if it fails. */
  advance(next: DecodedRow): Drawn | undefined {
    try {
      return this.#draw(next);
    } catch (error) {
      // The others of its batch continue.
      this.#failure = error;
      return undefined;
    }
  }

  result(): Sample {
    return {
      tokens: Int32Array.from(this.#tokens),
      logprobs: Float32Array.from(this.#logprobs),
      stopReason: this.#stopReason ?? "length",
      ...(this.#tops.length > 0 ? { topLogprobs: this.#tops } : {}),
    };
  }

  #draw(next: DecodedRow): Drawn {
    checkLogprobs(next);
    const { logits, probabilities } = this.#shaper?.shape(next) ?? next;
    const token = pickToken(logits, probabilities, this.options, () => this.#random.next());
    const drawn = { token, ...reportedLogprobs(next, token, this.options) };
    this.#tokens.push(token);
    this.#logprobs.push(drawn.logprob);
    if (drawn.top !== undefined) this.#tops.push(drawn.top);
    this.#shaper?.push(token);
    const stopped = this.options.stopTokens.has(token) || this.#stops?.push(token) === true;
    const mayStop = this.#tokens.length >= this.options.minTokens;
    if ((stopped && mayStop) || this.#shaper?.isOver === true) this.#stopReason = "stop";
    else if (this.#tokens.length >= this.#maxTokens) this.#stopReason = "length";
    return drawn;
  }
}

/** Throws unless all of a row is finite: nothing could be drawn from it. */
export function checkLogprobs({ logprobSum }: DecodedRow): void {
  if (Number.isFinite(logprobSum)) return;
  throw new EngineError(
    "not_finite",
    "the model's logits are not finite: its weights or the adapter's have grown out of range. Go back to " +
      "an earlier checkpoint and train with a lower learning rate.",
  );
}

/** Most likely tokens of a position with their log-probabilities, most likely first. */
export type TopTokens = readonly { readonly token: number; readonly logprob: number }[];

/** Log-probabilities to report for a drawn token: always those of the model itself. */
export function reportedLogprobs(
  row: DecodedRow,
  token: number,
  options: Pick<
    CheckedSampleOptions,
    "logprobsMode" | "temperature" | "topLogprobs" | "logprobTokens"
  >,
): { logprob: number; top?: TopTokens } {
  const { logprobsMode, temperature, topLogprobs, logprobTokens } = options;
  const { logits, logprobs } = row;
  const isTempered = temperature !== 0 && temperature !== 1;
  const total = logprobsMode === "raw" && isTempered ? logSumExp(logits) : undefined;
  const logprobOf = (id: number): number =>
    total === undefined ? at(logprobs, id) : at(logits, id) - total;
  const logprob = logprobOf(token);
  if (topLogprobs === 0 && logprobTokens.length === 0) return { logprob };
  const ids = new Set([...(topLogprobs > 0 ? largest(logits, topLogprobs) : []), ...logprobTokens]);
  return { logprob, top: Array.from(ids, (id) => ({ token: id, logprob: logprobOf(id) })) };
}

function logSumExp(logits: Float32Array): number {
  let top = -Infinity;
  for (const logit of logits) if (logit > top) top = logit;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - top);
  return top + Math.log(sum);
}

/** A token as it is generated. */
export interface TokenEvent {
  readonly sampleIndex: number;
  readonly token: number;
  readonly logprob: number;
  /** Alternatives; absent unless requested. */
  readonly top?: TopTokens;
}

/** The result of a request. */
export interface SampleResult extends PromptResult {
  readonly samples: readonly Sample[];
  /** Prompt tokens with keys and values cached by earlier requests. */
  readonly promptCacheHitTokens: number;
}

/** A request to a sampler. */
export interface SampleCall {
  readonly options: CheckedSampleOptions;
  readonly adapter: FrozenAdapter;
  readonly text?: TokenText | undefined;
  readonly constraint?: Constraint | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onTokens?: ((events: readonly TokenEvent[]) => void) | undefined;
}

/** A request under way: its prompt, the samples that have not started, and those that have ended. */
export class SampleJob {
  readonly call: SampleCall;
  /** Cache that each of its sequences may come to need. */
  readonly reservedBytes: number;
  readonly #result = new Deferred<SampleResult>();
  readonly #stopListening: () => void;
  readonly #samples: Sample[] = [];
  #prompt: PromptPass | undefined;
  #started = 0;
  #ended = 0;
  #settled = false;

  constructor(call: SampleCall, reservedBytes: number) {
    this.call = call;
    this.reservedBytes = reservedBytes;
    const { signal } = call;
    const abort = (): void => this.fail(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    this.#stopListening = () => signal?.removeEventListener("abort", abort);
  }

  get result(): Promise<SampleResult> {
    return this.#result.promise;
  }

  /** Whether it has finished, failed or been cancelled. */
  get settled(): boolean {
    return this.#settled;
  }

  get prompt(): PromptPass | undefined {
    return this.#prompt;
  }

  /** Starts reading the prompt. */
  begin(prompt: PromptPass): void {
    this.#prompt = prompt;
  }

  /** Samples that have not started. */
  get waitingSamples(): number {
    return this.call.options.numSamples - this.#started;
  }

  /** Starts the next sample: its first token is drawn from the prompt's last position. Throws if there is none. */
  startSample(contextLength: number): Sequence | undefined {
    const next = this.#prompt?.next;
    if (next === undefined) throw new Error("the prompt has not been read yet");
    const { options, adapter, text, constraint } = this.call;
    let sequence: Sequence;
    try {
      sequence = new Sequence(options, adapter, this.#started, contextLength, text, constraint);
    } catch (error) {
      this.fail(error);
      return undefined;
    }
    this.#started += 1;
    const drawn = sequence.ended ? undefined : sequence.advance(next);
    if (drawn !== undefined) this.report([{ sequence, ...drawn }]);
    return sequence;
  }

  /** Passes tokens on to the caller. */
  report(drawn: readonly DrawnToken[]): void {
    this.call.onTokens?.(
      drawn.map(({ sequence, ...token }) => ({ sampleIndex: sequence.index, ...token })),
    );
  }

  /** Takes a sample that has ended; the last one finishes the request, and one that failed fails it. */
  end(sequence: Sequence): void {
    if (sequence.failure !== undefined) this.fail(sequence.failure);
    this.#samples[sequence.index] = sequence.result();
    this.#ended += 1;
    const { options } = this.call;
    if (this.#ended < options.numSamples || this.#settled || this.#prompt === undefined) return;
    this.#settled = true;
    this.#stopListening();
    this.#result.resolve({
      samples: this.#samples,
      promptCacheHitTokens: this.#prompt.hitTokens,
      ...this.#prompt.scores.result(),
    });
  }

  fail(error: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#stopListening();
    this.#result.reject(error);
  }
}
