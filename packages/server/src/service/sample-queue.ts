import type { WireValue } from "tinker-ts/wire";
import type { Context } from "../context/context.js";
import type { SampleTarget } from "../engine-host/sample-target.js";
import { StoppedError, toFailure } from "../errors/failure.js";
import { FairQueue } from "../queue/fair-queue.js";
import type { QueueNote } from "../queue/queue-note.js";
import type { RequestHead, Settled } from "../store/requests-table.js";
import type { Usage, UsageAccount } from "../store/usage-table.js";

/** A sample request that has been accepted. */
export interface QueuedSample {
  readonly request: RequestHead;
  readonly numSamples: number;
  /** What it asks for, where that is at hand; otherwise it is read from the store. */
  readonly order?: WireValue<"SampleRequest"> | undefined;
  /** What it is addressed to, where it was found this very moment; what waits is looked up in its turn. */
  readonly target?: SampleTarget;
}

/** What a sample request came to. */
export interface SampleOutcome {
  readonly bytes: Uint8Array;
  readonly account: UsageAccount;
  readonly usage: readonly Usage[];
  readonly engineMs: number;
}

/** What the queue works with. */
type QueueContext = Pick<Context, "store" | "ledger" | "clock" | "logger" | "limits">;

/**
 * Accepted sample requests on their way through the engine.
 *
 * - Owners take turns, and so do the sessions of one; within one the order is that of acceptance.
 * - The engine gets a bounded number of sequences at a time and batches them itself; a request larger
 *   than the bound runs alone.
 */
export class SampleQueue {
  readonly #context: QueueContext;
  readonly #sample: (entry: QueuedSample, signal: AbortSignal) => Promise<SampleOutcome>;
  readonly #waiting = new FairQueue<QueuedSample>();
  readonly #running = new Map<string, { entry: QueuedSample; abort: AbortController }>();
  readonly #pendingByOwner = new Map<string, number>();
  #runningSequences = 0;
  #isPaused = false;
  #whenIdle: (() => void) | undefined;

  constructor(
    context: QueueContext,
    sample: (entry: QueuedSample, signal: AbortSignal) => Promise<SampleOutcome>,
  ) {
    this.#context = context;
    this.#sample = sample;
  }

  get pendingCount(): number {
    return this.#waiting.size + this.#running.size;
  }

  /** Requests of an owner that wait or run. */
  pendingOf(owner: string): number {
    return this.#pendingByOwner.get(owner) ?? 0;
  }

  /** Whether a request would run at once and is not running yet. */
  hasPlace({ requestId }: RequestHead): boolean {
    const isFree = this.#runningSequences < this.#context.limits.maxRunningSequences;
    return isFree && this.#waiting.size === 0 && !this.#running.has(requestId);
  }

  add(entry: QueuedSample): void {
    if (this.#isPaused) return;
    const { owner } = entry.request;
    this.#pendingByOwner.set(owner, this.pendingOf(owner) + 1);
    this.#waiting.add(owner, entry.request.sessionId ?? "", entry);
    this.#startMore();
  }

  /** Takes a request in that is being accepted; when it is not, it is given up and comes to nothing. */
  begin(entry: QueuedSample, accepted: Promise<void>): void {
    const { requestId } = entry.request;
    accepted.catch((error: unknown) => {
      const running = this.#running.get(requestId);
      if (running?.entry === entry) running.abort.abort(error);
    });
    this.add(entry);
  }

  /** What goes on in it. */
  view(): {
    runningSequences: number;
    waiting: number;
    waitingSessions: number;
    note: QueueNote | null;
  } {
    const { size } = this.#waiting;
    return {
      runningSequences: this.#runningSequences,
      waiting: size,
      waitingSessions: this.#waiting.groupCount,
      note: size === 0 ? null : this.#fullNote(),
    };
  }

  note(request: RequestHead): QueueNote {
    if (this.#running.has(request.requestId)) {
      return { queueState: "active", reason: "sampling" };
    }
    return this.#fullNote();
  }

  #fullNote(): QueueNote {
    const { size } = this.#waiting;
    const reason = `all places for sampling are taken, and ${size} requests are waiting for one`;
    return { queueState: "paused_capacity", reason };
  }

  /** Gives up everything of a session. */
  async stopSession(owner: string, sessionId: string, reason: string): Promise<void> {
    const error = new StoppedError(reason);
    const waiting = this.#waiting.remove(owner, sessionId);
    for (const { entry, abort } of this.#running.values()) {
      if (entry.request.sessionId === sessionId) abort.abort(error);
    }
    await Promise.all(waiting.map((entry) => this.#finish(entry, null, error)));
  }

  /** Lets what runs finish and starts nothing more; what waits stays in the store. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  #startMore(): void {
    const { maxRunningSequences } = this.#context.limits;
    while (!this.#isPaused && this.#runningSequences < maxRunningSequences) {
      const entry = this.#waiting.take();
      if (!entry) return;
      this.#runningSequences += entry.numSamples;
      void this.#run(entry);
    }
  }

  async #run(entry: QueuedSample): Promise<void> {
    const abort = new AbortController();
    const { requestId } = entry.request;
    this.#running.set(requestId, { entry, abort });
    const startedAt = this.#context.clock.now();
    try {
      const outcome = await this.#sample(entry, abort.signal);
      await this.#finish(entry, startedAt, undefined, outcome);
    } catch (error) {
      await this.#finish(entry, startedAt, abort.signal.aborted ? abort.signal.reason : error);
    } finally {
      // Another of the same id runs where this one was begun and then not accepted.
      if (this.#running.get(requestId)?.entry === entry) this.#running.delete(requestId);
      this.#runningSequences -= entry.numSamples;
      this.#startMore();
      if (this.#running.size === 0) this.#whenIdle?.();
    }
  }

  /** Commits the outcome of a request; never rejects. */
  async #finish(
    { request }: QueuedSample,
    startedAt: number | null,
    error: unknown,
    outcome?: SampleOutcome,
  ): Promise<void> {
    const { ledger, store, clock, logger } = this.#context;
    const isAccepted = (): Promise<boolean> =>
      ledger.accepted(request).then(
        () => true,
        () => false,
      );
    // Whoever sent one that is not has been told.
    if (!outcome && !(await isAccepted())) return this.#forgetPending(request.owner);
    const finishedAt = clock.now();
    const settled: Settled = outcome
      ? {
          state: "done",
          resultType: "SampleResponse",
          bytes: outcome.bytes,
          engineMs: outcome.engineMs,
        }
      : toFailure(error, logger);
    const tokens = outcome?.usage.reduce((sum, { amount }) => sum + amount, 0) ?? 0;
    const facts = { startedAt, finishedAt, applied: null, tokens };
    try {
      await ledger.finish(request, settled, facts, () => {
        if (outcome) store.usage.add(outcome.account, outcome.usage, finishedAt);
      });
    } catch (problem) {
      if (await isAccepted()) {
        logger.error("cannot record a sample", {
          request: request.requestId,
          error: String(problem),
        });
      }
    }
    this.#forgetPending(request.owner);
  }

  #forgetPending(owner: string): void {
    const left = this.pendingOf(owner) - 1;
    if (left > 0) this.#pendingByOwner.set(owner, left);
    else this.#pendingByOwner.delete(owner);
  }
}
