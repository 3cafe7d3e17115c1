import { ArgumentError, type ModelInput, type SamplingClient } from "tinker-ts";
import type { Action, StopCondition } from "./types.js";
import { mixSeeds } from "./seeds.js";

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

/** Sequences of one request; more are several. */
const mostAtOnce = 64;

interface Asked {
  readonly member: number;
  readonly request: PolicyRequest;
  readonly resolve: (action: Action) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The first turns of members that begin with the same prompt, sampled in one request: the prompt is read once and there is
 * one answer to wait for instead of one per member.
 *
 * - Sampling starts when every member has asked or left, so that the grouping does not depend on time.
 * - Members with another prompt, from a hook for instance, are sampled separately.
 */
export class FirstTurns {
  readonly #policy: Policy;
  readonly #how: { readonly seed: number; readonly signal: AbortSignal };
  readonly #missing: Set<number>;
  readonly #asked: Asked[] = [];

  constructor(
    policy: Policy,
    members: number,
    how: { readonly seed: number; readonly signal: AbortSignal },
  ) {
    this.#policy = policy;
    this.#how = how;
    this.#missing = new Set(Array.from({ length: members }, (_, member) => member));
  }

  /** The policy as a member uses it: its first turn waits for those of the others. */
  of(member: number): Policy {
    return (request) => {
      if (!this.#missing.has(member)) return this.#policy(request);
      return new Promise<Action>((resolve, reject) => {
        this.#asked.push({ member, request, resolve, reject });
        this.leave(member);
      });
    };
  }

  /** Removes a member; the others no longer wait for it. */
  leave(member: number): void {
    if (this.#missing.delete(member) && this.#missing.size === 0) this.#ask();
  }

  #ask(): void {
    const byPrompt = new Map<string, Asked[]>();
    for (const one of this.#asked.toSorted((a, b) => a.member - b.member)) {
      const key = keyOf(one);
      byPrompt.set(key, [...(byPrompt.get(key) ?? []), one]);
    }
    for (const alike of byPrompt.values()) {
      for (let start = 0; start < alike.length; start += mostAtOnce) {
        void this.#askTogether(alike.slice(start, start + mostAtOnce));
      }
    }
  }

  async #askTogether(asked: readonly Asked[]): Promise<void> {
    const actions = asked.length > 1 ? await this.#many(asked) : undefined;
    for (const [index, { request, resolve, reject }] of asked.entries()) {
      if (actions) resolve(actions[index]!);
      else this.#policy(request).then(resolve, reject);
    }
  }

  /** One request for all; undefined when it fails, so that a failure is one member's and not that of all. */
  async #many(asked: readonly Asked[]): Promise<readonly Action[] | undefined> {
    const { seed, signal } = this.#how;
    const { member, request } = asked[0]!;
    const own = mixSeeds(seed, member, asked.length);
    try {
      // The group's signal: a member that gives up must not take the others' answers along.
      return await this.#policy.many?.({ ...request, seed: own, signal }, asked.length);
    } catch {
      return undefined;
    }
  }
}

/** What two requests must share to be one. */
function keyOf({ member, request: { input, stop, maxTokens } }: Asked): string {
  const tokens = textTokens(input);
  return JSON.stringify(tokens ? [tokens, stop, maxTokens] : member);
}

function textTokens({ chunks }: ModelInput): number[] | undefined {
  const texts = chunks.flatMap((chunk) => (chunk.type === "encoded_text" ? [chunk] : []));
  return texts.length === chunks.length ? texts.flatMap(({ tokens }) => [...tokens]) : undefined;
}
