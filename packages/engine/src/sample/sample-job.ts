import type { Constraint } from "../constrain/constraint.js";
import { Deferred } from "../util/turns.js";
import type { FrozenAdapter } from "./adapter-set.js";
import type { DrawnToken } from "./decode-group.js";
import type { PromptPass, PromptResult } from "./prompt-pass.js";
import { type Sample, Sequence, type TopTokens } from "./sequence.js";
import type { CheckedSampleOptions } from "./request.js";
import type { TokenText } from "./stop-matcher.js";

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
