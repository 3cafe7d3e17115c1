import { createHash } from "node:crypto";
import type { SampleRequest as EngineRequest, SampleResult, TokenEvent } from "@tinker-ts/engine";
import type { WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Workers } from "../workers/workers.js";
import type { EngineGuard } from "../engine-host/engine-guard.js";
import type { SamplerWeights } from "../engine-host/sampler-weights.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { badRequest } from "../errors/api-error.js";
import { checkSamplePrice, priceOfSamples, type ServerLimits } from "../prices.js";
import type { ServerScheduler, Turn } from "../scheduler.js";
import type { Sessions } from "../sessions/sessions.js";
import { hasSchema, schemaConstraint } from "./extensions.js";
import { checkSampleRequest, toSampleOrder } from "./sample-options.js";
import { resolveTarget, type SampleTarget, type TargetParts } from "./sample-target.js";

type SampleRequest = WireValue<"SampleRequest">;

/** What sample requests are checked and run with. */
export interface SampleRequestsParts extends TargetParts {
  readonly scheduler: ServerScheduler;
  readonly weights: SamplerWeights;
  readonly sessions: Sessions;
  readonly workers: Workers;
  readonly guard: EngineGuard;
  readonly limits: ServerLimits;
}

/** Resolves once more may come; undefined where it may come at once. */
export type WhenReady = () => Promise<void> | undefined;

/** How orders are run. */
export interface SampleRun {
  readonly owner: string;
  /** What of the owner asks, such as a session. */
  readonly group: string;
  readonly signal: AbortSignal;
  /** Called with each token; `order` is the place of its order in the list. */
  readonly onToken?: ((order: number, event: TokenEvent) => void) | undefined;
  /** The first turn, where it was waited for already. */
  readonly turn?: Turn;
  /** Asked before every turn is used: whether it has to wait, such as for a reader to catch up. */
  readonly whenReady?: WhenReady | undefined;
}

/** From a sample request to its target, its options, and the engine. */
export class SampleRequests {
  readonly #parts: SampleRequestsParts;

  constructor(parts: SampleRequestsParts) {
    this.#parts = parts;
  }

  /** Checks all that can be checked before a model is loaded, so that a mistake is refused at once. */
  async check(caller: Principal, request: SampleRequest): Promise<SampleTarget> {
    const { bases, sessions, limits } = this.#parts;
    if (request.targetPromptLogprobs) await this.#learnVocabulary(caller, request);
    checkSampleRequest(request, limits.maxNumSamples);
    const target = this.resolve(request, caller.owner);
    const { sessionId, samplerId } = target;
    if (sessionId !== null && samplerId !== null) {
      sessions.touchSampler(samplerId, sessionId, caller);
    }
    const facts = bases.known(target.baseModel);
    if (facts) this.#checkPrice(toSampleOrder(request, facts));
    return target;
  }

  /** Finds what a request is addressed to. */
  resolve(address: Parameters<typeof resolveTarget>[1], owner: string): SampleTarget {
    return resolveTarget(this.#parts, address, owner);
  }

  /** What a sample must look like, if its request has a schema. */
  async constraint(
    owner: string,
    { samplingParams }: SampleRequest,
  ): Promise<Pick<SampleOrder, "constraint">> {
    if (!hasSchema(samplingParams)) return {};
    return schemaConstraint(this.#parts.workers, owner, samplingParams);
  }

  /** What the engine is asked for, with a seed made from the id where it has none; refuses what the model cannot do. */
  async toOrder(
    target: SampleTarget,
    owner: string,
    request: SampleRequest,
    id: string,
  ): Promise<SampleOrder> {
    const facts = await this.#parts.bases.find(target.baseModel);
    const order = toSampleOrder(withSeed(request, id), facts);
    this.#checkPrice(order);
    return { ...order, ...(await this.constraint(owner, request)) };
  }

  /** Notes that the weights of a target are in use, so that ephemeral ones stay. */
  noteUse({ checkpoint }: SampleTarget): void {
    if (checkpoint) this.#parts.checkpoints.noteUse(checkpoint);
  }

  /**
   * Samples from a target, in turns of a bounded number of sequences: one turn after the other is waited for, so
   * that a large request never holds more than its owner's share. One that fails ends the others.
   */
  async run(
    target: SampleTarget,
    orders: readonly SampleOrder[],
    { owner, group, signal, onToken, whenReady, ...given }: SampleRun,
  ): Promise<SampleResult[]> {
    const { scheduler, limits } = this.#parts;
    const results: SampleResult[][] = orders.map(() => []);
    const running: Promise<void>[] = [];
    let first = given.turn;
    const failing = new AbortController();
    const whole = AbortSignal.any([signal, failing.signal]);
    const runPart = async (turn: Turn, order: number, part: SampleOrder): Promise<void> => {
      const place = results[order]!.push(empty) - 1;
      // Who gives up pays for the prompt, too.
      let cost = part.prompt.length;
      const { firstSample = 0 } = part;
      try {
        const result = await this.#sample(target, {
          ...part,
          cacheScope: owner,
          signal: whole,
          ...(onToken && {
            onToken: ({ sampleIndex, ...token }) => {
              cost++;
              onToken(order, { ...token, sampleIndex: firstSample + sampleIndex });
            },
          }),
        });
        results[order]![place] = result;
        const made = result.samples.reduce((sum, { tokens }) => sum + tokens.length, 0);
        cost = part.prompt.length - result.promptCacheHitTokens + made;
      } catch (error) {
        failing.abort(error);
        throw error;
      } finally {
        turn.end(cost);
      }
    };
    try {
      for (const [index, order] of orders.entries()) {
        for (const part of partsOf(order, limits.maxTurnSequences)) {
          const size = part.numSamples;
          const cost = part.prompt.length + size * part.maxTokens;
          const request = { resource: "samples", owner, group, size, cost } as const;
          let turn = first ?? (await scheduler.turn(request, whole));
          first = undefined;
          for (let ready = whenReady?.(); ready; ready = whenReady?.()) {
            turn.end(0);
            await untilAborted(ready, whole);
            turn = await scheduler.turn(request, whole);
          }
          const work = runPart(turn, index, part);
          // Its failure is that of everything, below.
          work.catch(() => {});
          running.push(work);
        }
      }
      await Promise.all(running);
    } finally {
      first?.end();
      await Promise.allSettled(running);
    }
    return results.map(joined);
  }

  /**
   * Samples in the engine. When it breaks, the order may be tried again, since it has changed nothing; not so when
   * its tokens have already been sent.
   */
  #sample(target: SampleTarget, order: Omit<EngineRequest, "adapter">): Promise<SampleResult> {
    const { bases, weights, guard } = this.#parts;
    return guard.run(order.onToken ? 1 : 2, async () => {
      const model = await bases.load(target.baseModel, target.checkpoint?.runId);
      if (!target.checkpoint) return model.sample(order);
      return weights.use(target.checkpoint, (adapter) => model.sample({ ...order, adapter }));
    });
  }

  #checkPrice(order: SampleOrder): void {
    const price = priceOfSamples([order], { form: "tinker", promptCopies: 1 });
    checkSamplePrice(price, this.#parts.limits, (part, problem) =>
      badRequest(fields[part], problem),
    );
  }

  /** Finds out, where it is not known yet, which of the tokens to score a model on this machine has. */
  async #learnVocabulary({ owner }: Principal, request: SampleRequest): Promise<void> {
    const { baseModel } = this.resolve(request, owner);
    // A model that cannot be read fails the request when it is its turn.
    await this.#parts.bases.peek(baseModel).catch(() => undefined);
  }
}

function withSeed(request: SampleRequest, id: string): SampleRequest {
  if (request.samplingParams.seed !== null) return request;
  const seed = createHash("sha256").update(id).digest().readUIntBE(0, 6);
  return { ...request, samplingParams: { ...request.samplingParams, seed } };
}

/** The fields that the parts of a price come from. */
const fields = {
  samples: "num_samples",
  tokens: "sampling_params.max_tokens",
  logprobs: "topk_sample_logprobs",
  prompt: "topk_prompt_logprobs",
} as const;

const empty: SampleResult = { samples: [], promptCacheHitTokens: 0 };

/** Parts of an order, of so many samples each; the first one also scores the prompt. */
function partsOf(order: SampleOrder, maxSamples: number): SampleOrder[] {
  const { numSamples } = order;
  if (numSamples <= maxSamples) return [order];
  const {
    promptLogprobs: _,
    topkPromptLogprobs: __,
    promptLogprobsLastN: ___,
    promptTargets: ____,
    promptAlternatives: _____,
    ...unscored
  } = order;
  const count = Math.ceil(numSamples / maxSamples);
  return Array.from({ length: count }, (_one, index) => {
    const firstSample = index * maxSamples;
    const part = { firstSample, numSamples: Math.min(maxSamples, numSamples - firstSample) };
    return index === 0 ? { ...order, ...part } : { ...unscored, ...part };
  });
}

function joined([first, ...others]: readonly SampleResult[]): SampleResult {
  if (!first || others.length === 0) return first ?? empty;
  return { ...first, samples: [first, ...others].flatMap(({ samples }) => samples) };
}

/** The result of work, or the reason of its abortion, which may come before the work ends. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
