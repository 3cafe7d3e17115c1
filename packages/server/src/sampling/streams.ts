import { randomUUID } from "node:crypto";
import type { SampleRequest as EngineRequest, SampleResult, TokenEvent } from "@tinker-ts/engine";
import type { WireInput, WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { tooMany } from "../errors/api-error.js";
import { StoppedError } from "../errors/failure.js";
import type { Metrics } from "../metrics/metrics.js";
import type { ServerScheduler } from "../scheduler.js";
import { priceOfSamples } from "../prices.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { toSampleResponse } from "./sample-options.js";
import type { SampleRequests, WhenReady } from "./sample-requests.js";
import type { SampleTarget } from "./sample-target.js";

/** What streams work with. */
export interface StreamsParts {
  readonly store: Store;
  readonly scheduler: ServerScheduler;
  readonly requests: SampleRequests;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** How direct samples are run. */
export interface StreamOptions {
  readonly signal: AbortSignal;
  /** The route that the metrics count it for. */
  readonly route: string;
  /** Called with each token; `order` is the place of its order in the list. */
  readonly onToken?: (order: number, event: TokenEvent) => void;
  /** Asked before every turn is used: whether it has to wait, such as for a reader to catch up. */
  readonly whenReady?: WhenReady | undefined;
}

/** Called with each token as it comes. */
export type OnToken = NonNullable<EngineRequest["onToken"]>;

/** Samples and reports every token. */
export type SampleStream = (
  onToken: OnToken,
  signal: AbortSignal,
  whenReady: WhenReady,
) => Promise<WireInput<"SampleResponse">>;

/**
 * Samples that are answered on the connection that asked: nothing of them is kept but what they used.
 *
 * They wait for their turn in a bounded queue that is fair among owners. Who hangs up while one runs pays
 * for what was sampled until then.
 */
export class SampleStreams {
  readonly #parts: StreamsParts;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(parts: StreamsParts) {
    this.#parts = parts;
  }

  /** Checks a request and returns the way to sample as soon as it is its turn; nothing of it is kept. */
  async open(caller: Principal, request: WireValue<"SampleRequest">): Promise<SampleStream> {
    const { requests } = this.#parts;
    const target = await requests.check(caller, request);
    this.checkRoom(caller.owner);
    return async (onToken, signal, whenReady) => {
      const order = await requests.toOrder(target, caller.owner, request, randomUUID());
      const [result] = await this.run(caller, target, [order], {
        signal,
        whenReady,
        route: "stream_sample",
        onToken: (_, event) => onToken(event),
      });
      return toSampleResponse(request, result!);
    };
  }

  /** Refuses where too many wait already. */
  checkRoom(owner: string): void {
    const { scheduler } = this.#parts;
    if (scheduler.hasRoom({ resource: "streams", owner })) return;
    const { waiting } = scheduler.load("streams");
    throw tooMany(`${waiting} requests are waiting to sample; try again in a moment`, 1000);
  }

  /** Runs orders for the same weights to their end. */
  async run(
    caller: Principal,
    target: SampleTarget,
    orders: readonly SampleOrder[],
    { signal, route, onToken, whenReady }: StreamOptions,
  ): Promise<readonly SampleResult[]> {
    const { scheduler, requests, clock, metrics } = this.#parts;
    const arrivedAt = performance.now();
    const combined = AbortSignal.any([signal, this.#closing.signal]);
    combined.throwIfAborted();
    this.checkRoom(caller.owner);
    const { tokens } = priceOfSamples(orders, { form: "tinker", promptCopies: 1 });
    const place = { resource: "streams", owner: caller.owner, group: "", cost: tokens } as const;
    const turn = await scheduler.turn(place, combined);
    const begunAt = clock.now();
    requests.noteUse(target);
    let total = 0;
    const sampled = orders.map(() => 0);
    let results: readonly SampleResult[] = [];
    const all = requests
      .run(target, orders, {
        owner: caller.owner,
        group: "",
        signal: combined,
        whenReady,
        onToken: (order, event) => {
          if (++total === 1) {
            const seconds = (performance.now() - arrivedAt) / 1000;
            metrics.firstTokenSeconds.observe(seconds, { route });
          }
          sampled[order]! += 1;
          onToken?.(order, event);
        },
      })
      .then((ended) => {
        results = ended;
      });
    this.#running.add(all);
    try {
      await all;
    } finally {
      this.#running.delete(all);
      turn.end(total);
      const endedAt = clock.now();
      const [tookMs, waitMs] = [endedAt - begunAt, 0];
      metrics.timeline.note("sampling", { endedAt, tookMs, waitMs, tokens: total });
      await this.#bill(caller, target, orders, results, sampled);
    }
    return results;
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
    results: readonly SampleResult[],
    sampled: readonly number[],
  ): Promise<void> {
    const { store, clock, metrics } = this.#parts;
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
