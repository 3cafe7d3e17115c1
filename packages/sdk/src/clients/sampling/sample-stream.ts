import { CancelledError } from "../../errors/tinker-error.js";
import type { ApiFuture } from "../../futures/api-future.js";
import { defer, type Deferred } from "../../runtime/deferred.js";
import type { SampleResponse, TokenLogprob } from "../../types/sampling.js";

/** One token as it was sampled. */
export interface SampledToken {
  /** Which of the samples it belongs to, from 0. */
  readonly index: number;
  /** The token's id. */
  readonly token: number;
  /** Its logprob in the distribution it was drawn from; null when the server does not send it. */
  readonly logprob: number | null;
  /**
   * The text that it completes, without special tokens: empty inside a character of several tokens. Null
   * when no tokenizer is known.
   */
  readonly text: string | null;
  /** The most probable tokens in its place; absent unless asked for with `topkSampleLogprobs`. */
  readonly topLogprobs?: readonly TokenLogprob[];
}

/**
 * Tokens as they are sampled, to be read once with `for await`. Leaving the loop early, or aborting,
 * ends the sampling at the server.
 */
export class SampleStream implements AsyncIterable<SampledToken, SampleResponse> {
  /** The whole response, which comes after the last token; also has status and timings. */
  readonly response: ApiFuture<SampleResponse>;
  readonly #tokens: TokenQueue;

  /** @internal */
  constructor(response: ApiFuture<SampleResponse>, tokens: TokenQueue) {
    this.response = response;
    this.#tokens = tokens;
    response.then(
      (value) => tokens.end(value),
      (error: unknown) => tokens.fail(error),
    );
  }

  /**
   * Whether tokens come as they are sampled; false when the server cannot stream, so that all of them
   * come at the end. Null before that is known.
   */
  get isLive(): boolean | null {
    return this.#tokens.isLive;
  }

  /** The tokens, then the whole response as the value of the iteration. */
  [Symbol.asyncIterator](): AsyncIterator<SampledToken, SampleResponse> {
    return {
      next: () => this.#tokens.next(),
      return: async () => {
        this.response.cancel(new CancelledError("The stream was left before its end."));
        this.#tokens.clear();
        return { done: true, value: undefined as unknown as SampleResponse };
      },
    };
  }
}

/** Tokens between the connection and the reader of the stream. */
export class TokenQueue {
  isLive: boolean | null = null;
  #tokens: SampledToken[] = [];
  #read = 0;
  #waiting: Deferred<void> | undefined;
  #end: (() => IteratorReturnResult<SampleResponse>) | undefined;

  push(token: SampledToken): void {
    this.#tokens.push(token);
    this.#wake();
  }

  end(response: SampleResponse): void {
    this.#end ??= () => ({ done: true, value: response });
    this.#wake();
  }

  /** Ends with an error at once, whatever is there still to be read. */
  fail(error: unknown): void {
    this.clear();
    this.#end ??= () => {
      throw error;
    };
    this.#wake();
  }

  clear(): void {
    this.#tokens = [];
    this.#read = 0;
  }

  async next(): Promise<IteratorResult<SampledToken, SampleResponse>> {
    for (;;) {
      const value = this.#tokens[this.#read];
      if (value) {
        this.#read++;
        if (this.#read === this.#tokens.length) this.clear();
        return { done: false, value };
      }
      if (this.#end) return this.#end();
      this.#waiting ??= defer();
      await this.#waiting.promise;
    }
  }

  #wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
