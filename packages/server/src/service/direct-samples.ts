import type { SampleResult, TokenEvent } from "@tinker-ts/engine";
import type { Principal } from "../auth/principal.js";
import type { Checkpoints } from "../checkpoints/checkpoints.js";
import type { Context } from "../context/context.js";
import { runSample, type SamplerParts } from "../engine-host/sample-runner.js";
import type { SampleTarget } from "../engine-host/sample-target.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { StoppedError } from "../errors/failure.js";
import { Places } from "../queue/places.js";

/** How direct samples are run. */
export interface DirectOptions {
  readonly signal: AbortSignal;
  /** Whom the metrics count it for. */
  readonly route: string;
  /** Told of each token; `order` is the place of its order in the list. */
  readonly onToken?: (order: number, event: TokenEvent) => void;
}

/**
 * Samples that are answered on the connection that asked: nothing of them is kept but what they used.
 *
 * They wait for their turn in a bounded queue that is fair among owners. Who hangs up while one runs pays
 * for what was sampled until then.
 */
export class DirectSamples {
  readonly places: Places;
  readonly #context: Context;
  readonly #parts: SamplerParts & { readonly checkpoints: Checkpoints };
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(context: Context, parts: SamplerParts & { readonly checkpoints: Checkpoints }) {
    this.#context = context;
    this.#parts = parts;
    this.places = new Places(context.limits.maxStreams, context.limits.maxWaitingStreams);
  }

  /** Runs orders for the same weights to their end. */
  async run(
    caller: Principal,
    target: SampleTarget,
    orders: readonly SampleOrder[],
    { signal, route, onToken }: DirectOptions,
  ): Promise<readonly SampleResult[]> {
    const arrivedAt = performance.now();
    const combined = AbortSignal.any([signal, this.#closing.signal]);
    const free = await this.places.take(caller.owner, combined);
    const begunAt = this.#context.clock.now();
    if (target.checkpoint) this.#parts.checkpoints.noteUse(target.checkpoint);
    let total = 0;
    const sampled = orders.map(() => 0);
    const results: (SampleResult | undefined)[] = orders.map(() => undefined);
    // One that fails does not leave the others running.
    const failing = new AbortController();
    const whole = AbortSignal.any([combined, failing.signal]);
    const run = async (order: SampleOrder, index: number): Promise<void> => {
      results[index] = await runSample(this.#parts, target, {
        ...order,
        signal: whole,
        onToken: (event) => {
          if (++total === 1) {
            const seconds = (performance.now() - arrivedAt) / 1000;
            this.#context.metrics.firstTokenSeconds.observe(seconds, { route });
          }
          sampled[index]! += 1;
          onToken?.(index, event);
        },
      });
    };
    const all = Promise.all(
      orders.map((order, index) =>
        run(order, index).catch((error: unknown) => {
          failing.abort();
          throw error;
        }),
      ),
    );
    this.#running.add(all);
    try {
      await all;
    } finally {
      this.#running.delete(all);
      free();
      const endedAt = this.#context.clock.now();
      const [tookMs, waitMs] = [endedAt - begunAt, 0];
      this.#context.metrics.timeline.note("sampling", { endedAt, tookMs, waitMs, tokens: total });
      await this.#bill(caller, target, orders, results, sampled);
    }
    return results.flatMap((result) => result ?? []);
  }

  /** Lets what runs finish until the time is over; then ends it, and refuses what waits. */
  async close(graceMs: number): Promise<void> {
    const ended = Promise.allSettled(this.#running);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    await Promise.race([ended, late]);
    clearTimeout(timer);
    this.#closing.abort(new StoppedError("the server is shutting down", "server"));
    await Promise.allSettled(this.#running);
  }

  async #bill(
    caller: Principal,
    target: SampleTarget,
    orders: readonly SampleOrder[],
    results: readonly (SampleResult | undefined)[],
    sampled: readonly number[],
  ): Promise<void> {
    const { store, clock, metrics } = this.#context;
    let [read, cached, made] = [0, 0, 0];
    for (const [index, order] of orders.entries()) {
      const count = sampled[index] ?? 0;
      const result = results[index];
      // What never began has cost nothing.
      if (count === 0 && result === undefined) continue;
      const hits = result?.promptCacheHitTokens ?? 0;
      read += order.prompt.length - hits;
      cached += hits;
      made += count;
    }
    if (read + cached + made === 0) return;
    metrics.tokens.add(made, { kind: "sample" });
    const modelId = target.checkpoint?.runId ?? null;
    const account = { ...target, modelId, owner: caller.owner };
    const usage = [
      { kind: "sampling_prefill", amount: read },
      { kind: "sampling_prefill_cached", amount: cached },
      { kind: "sampling_sample", amount: made },
    ] as const;
    await store.write(() => store.usage.add(account, usage, clock.now()));
  }
}
