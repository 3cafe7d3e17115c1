import type { ModelInput } from "tinker-ts";
import type { Policy, PolicyRequest } from "./policy.js";
import { mixSeeds } from "./seeds.js";
import type { Action } from "./types.js";

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
