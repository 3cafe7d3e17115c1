import { ArgumentError, type ModelInput, type SamplingClient } from "tinker-ts";
import type { Action, StopCondition } from "./types.js";

/** What a policy is asked for one turn. */
export interface PolicyRequest {
  /** The prompt. */
  readonly input: ModelInput;
  /** Where the turn ends. */
  readonly stop?: StopCondition | undefined;
  /** Most tokens that this turn may have, besides the policy's own limit. */
  readonly maxTokens?: number | undefined;
  /** Makes the turn repeatable. */
  readonly seed?: number | undefined;
  /** Gives the turn up. */
  readonly signal?: AbortSignal | undefined;
}

/** Something that acts: prompts to sampled tokens. */
export interface Policy {
  (request: PolicyRequest): Promise<Action>;
  /** Acts several times on one prompt, at less cost than one by one; absent where that is no different. */
  readonly many?:
    | ((request: PolicyRequest, count: number) => Promise<readonly Action[]>)
    | undefined;
}

/** How a sampling client acts. */
export interface SamplingPolicyOptions {
  /** Most tokens of a turn. */
  readonly maxTokens: number;
  /**
   * Log-probabilities are those of the distribution sampled from, at any temperature.
   * @default 1
   */
  readonly temperature?: number | undefined;
  /** Positions that the model can read; turns are cut so that prompt and answer fit. */
  readonly contextWindow?: number | undefined;
}

/** A policy that samples. */
export function samplingPolicy(sampling: SamplingClient, options: SamplingPolicyOptions): Policy {
  const { maxTokens, temperature = 1, contextWindow = Number.POSITIVE_INFINITY } = options;
  const many = async (
    { input, stop, maxTokens: atMost = maxTokens, seed, signal }: PolicyRequest,
    count: number,
  ): Promise<Action[]> => {
    const room = Math.min(maxTokens, atMost, contextWindow - input.length);
    if (room <= 0) {
      throw new ArgumentError("input", `${input.length} positions leave no room for an answer`);
    }
    const response = await sampling.sample({
      prompt: input,
      numSamples: count,
      samplingParams: {
        maxTokens: room,
        temperature,
        ...(seed === undefined ? {} : { seed }),
        ...(stop && stop.length > 0 ? { stop: [...stop] as string[] | number[] } : {}),
      },
      ...(signal ? { signal } : {}),
    });
    return response.sequences.map(({ tokens, logprobs, stopReason }) => {
      if (!logprobs) {
        throw new ArgumentError(
          "sampling",
          "the server returned no log-probabilities; training needs them",
        );
      }
      return {
        tokens: Int32Array.from(tokens),
        logprobs: Float32Array.from(logprobs),
        stopReason,
      };
    });
  };
  return Object.assign(async (request: PolicyRequest) => (await many(request, 1))[0]!, { many });
}
