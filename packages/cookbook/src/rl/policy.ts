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
export type Policy = (request: PolicyRequest) => Promise<Action>;

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
  return async ({ input, stop, maxTokens: atMost = maxTokens, seed, signal }) => {
    const room = Math.min(maxTokens, atMost, contextWindow - input.length);
    if (room <= 0) {
      throw new ArgumentError("input", `${input.length} positions leave no room for an answer`);
    }
    const response = await sampling.sample({
      prompt: input,
      samplingParams: {
        maxTokens: room,
        temperature,
        ...(seed === undefined ? {} : { seed }),
        ...(stop && stop.length > 0 ? { stop: [...stop] as string[] | number[] } : {}),
      },
      ...(signal ? { signal } : {}),
    });
    const sequence = response.sequences[0]!;
    if (!sequence.logprobs) {
      throw new ArgumentError(
        "sampling",
        "the server returned no log-probabilities; training needs them",
      );
    }
    return {
      tokens: Int32Array.from(sequence.tokens),
      logprobs: Float32Array.from(sequence.logprobs),
      stopReason: sequence.stopReason,
    };
  };
}
