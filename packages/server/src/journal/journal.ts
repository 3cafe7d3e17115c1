import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import type { WireTypeName } from "tinker-ts/wire";
import { conflict } from "../errors/api-error.js";
import { DamagedError } from "../errors/damaged-error.js";
import { isStorageFailure } from "../errors/storage-failure.js";
import { withoutDataDir } from "../errors/without-data-dir.js";
import type { Logger } from "../log/logger.js";
import type { Metrics } from "../metrics/metrics.js";
import {
  digestOf,
  inlineContent,
  isLarge,
  placeOf,
  readContent,
  readPayload,
  resultDigest,
  storeContent,
  storedBytes,
  type StoredPayload,
} from "../store/content.js";
import type {
  FinishedFacts,
  Outcome,
  RequestKind,
  RequestRow,
  Settled,
} from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";

/** A request that is to be accepted. */
export interface NewRequest {
  readonly requestId: string;
  readonly owner: string;
  readonly sessionId: string | null;
  readonly modelId: string | null;
  readonly samplerId: string | null;
  readonly seq: number | null;
  readonly kind: RequestKind;
  /** Digest of what the client asked for; a retry has the same. */
  readonly identity: Uint8Array;
  readonly payload: Uint8Array;
  /** SHA-256 of the payload, where the identity is not made from all of it. */
  readonly digest?: Uint8Array | undefined;
}

/** Why a request has not finished yet, as polls return it. */
export interface QueueNote {
  readonly queueState: "active" | "paused_capacity" | "paused_rate_limit";
  readonly reason: string;
}

const storeRetryMs = 1000;

/**
 * Accepted requests with their outcomes, as they are on disk.
 *
 * - A request is accepted once it is committed; only then is its id returned and its work begun.
 * - Accepting the same request again changes nothing; another one under the same id is a conflict.
 * - An outcome is given to polls after it is committed.
 */
export class Journal {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #pending = new Map<string, RequestRow>();
  readonly #polls: Waiters<Settled>;
  readonly #samplerPolls: Waiters<true>;
  #isSealed = false;

  constructor(store: Store, clock: Clock, logger: Logger, metrics: Metrics) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
    this.#metrics = metrics;
    this.#polls = new Waiters(clock);
    this.#samplerPolls = new Waiters(clock);
  }

  /**
   * Accepts a request. `write` runs in the same transaction, for a new request only: it refuses by throwing and
   * writes what must exist together with the request. Returns the row of a new request, null for a repeated one.
   */
  async accept(request: NewRequest, write: () => void): Promise<RequestRow | null> {
    if (isLarge(request.payload) && this.#isRepeated(request)) return null;
    const { payload, digest, ...asked } = request;
    const { requests, blobs } = this.#store;
    const content = await storeContent(payload, blobs);
    const row: RequestRow = {
      ...asked,
      state: "pending",
      payloadBytes: content.sizeBytes,
      applied: null,
      acceptedAt: this.#clock.now(),
      startedAt: null,
      finishedAt: null,
    };
    let isNew = false;
    try {
      isNew = await this.#store.write(() => {
        if (!requests.insert(row, content, digest)) return !this.#isRepeated(request);
        write();
        return true;
      });
    } finally {
      if (!isNew && content.blob !== null) await blobs.remove([content.blob]);
    }
    if (!isNew) return null;
    this.#pending.set(row.requestId, row);
    return row;
  }

  /** Takes in a request that was accepted before this process started. */
  resume(request: RequestRow): void {
    this.#pending.set(request.requestId, request);
  }

  /** A request by its id; pending ones are in memory. */
  find(requestId: string): RequestRow | undefined {
    return this.#pending.get(requestId) ?? this.#store.requests.get(requestId);
  }

  /** The payload of a request that has not finished or that a model is brought back with. */
  async payload(requestId: string): Promise<Uint8Array> {
    return readPayload(this.stored(requestId));
  }

  /** Where that payload is, for a thread that reads it. */
  stored(requestId: string): StoredPayload {
    const row = this.#store.requests.payload(requestId);
    const stored = row && storedBytes(row.content, this.#store.blobs);
    if (!stored) throw new DamagedError(`the payload of request ${requestId}`, "is missing");
    const { kind, identity, digest } = row;
    return { stored, kind, identity, digest };
  }

  /** Commits the outcome of a request together with `write`, then gives it to polls. */
  async finish(
    request: RequestRow,
    result: Settled,
    facts: FinishedFacts,
    write: () => void = () => {},
  ): Promise<void> {
    if (this.#isSealed) return;
    const settled =
      result.state === "done"
        ? result
        : { ...result, error: withoutDataDir(result.error, this.#store.dataDir) };
    const outcome =
      smallOutcome(settled) ?? (await this.#untilStored(() => this.#largeOutcome(settled)));
    const unused = await this.#untilStored(() =>
      this.#store.write(() => {
        write();
        return this.#store.requests.finish(request, outcome, facts);
      }),
    );
    const { requestId, samplerId } = request;
    this.#pending.delete(requestId);
    this.#polls.settle(requestId, settled);
    const client = samplerId === null ? undefined : samplerClientOf(requestId);
    if (client !== undefined) this.#samplerPolls.settle(client, true);
    this.#metrics.later(() => this.#metrics.noteFinished(request, settled.state, facts));
    if (unused !== null) await this.#store.blobs.remove([unused]);
  }

  /** Waits for the outcome of a pending request; undefined when the time is over. */
  wait(requestId: string, waitMs: number, signal: AbortSignal): Promise<Settled | undefined> {
    return this.#polls.wait(requestId, waitMs, signal);
  }

  /** Waits until any sample of a sampler's client has an outcome; undefined when the time is over. */
  waitForClient(client: string, waitMs: number, signal: AbortSignal): Promise<true | undefined> {
    return this.#samplerPolls.wait(client, waitMs, signal);
  }

  /** Ends all waiting, so that the server can stop. */
  releasePolls(): void {
    this.#polls.releaseAll();
    this.#samplerPolls.releaseAll();
  }

  /** The outcome of a finished request; undefined when it is pending, unknown or its answer was dropped. */
  async outcome(requestId: string): Promise<Settled | undefined> {
    const outcome = this.#store.requests.outcome(requestId);
    if (!outcome || outcome.state === "failed") return outcome;
    const { result, digest } = outcome;
    try {
      const bytes = await readContent(result, this.#store.blobs);
      if (!bytes) return undefined;
      if (digest !== null && !timingSafeEqual(await resultDigest(bytes), digest)) {
        throw new DamagedError(placeOf(result), "does not match its SHA-256");
      }
      return { state: "done", resultType: outcome.resultType as WireTypeName, bytes };
    } catch (error) {
      if (!(error instanceof DamagedError)) throw error;
      this.#logger.error("a result is damaged", { request: requestId, error: error.message });
      const text = `request ${requestId} was done, but its result is lost: ${error.message}`;
      return { state: "failed", error: text, category: "server" };
    }
  }

  /** Records no more outcomes: what ends from now on ends because the server does, and runs again later. */
  seal(): void {
    this.#isSealed = true;
  }

  /** True for a request that was accepted before; refuses another one of the same id. */
  #isRepeated({ requestId, identity }: NewRequest): boolean {
    const before = this.#store.requests.get(requestId);
    // Ids hold the id of a model or the owner's name: a client that has one owns the request.
    if (!before || timingSafeEqual(before.identity, identity)) return before !== undefined;
    throw conflict(
      `request ${requestId} was already made with another content (${before.kind}); a sequence number can be used once`,
    );
  }

  async #largeOutcome(settled: Settled): Promise<Outcome> {
    if (settled.state === "failed") return settled;
    const { state, resultType, bytes } = settled;
    const result = await storeContent(bytes, this.#store.blobs);
    return { state, resultType, result, digest: await resultDigest(bytes) };
  }

  /** Tries until the disk takes it: a full disk delays an outcome, it does not lose it. */
  async #untilStored<T>(action: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await action();
      } catch (error) {
        if (!isStorageFailure(error)) throw error;
        this.#logger.error("cannot write to the data directory", { error: error.message });
        await new Promise<void>((resolve) => this.#clock.after(storeRetryMs, resolve));
      }
    }
  }
}

/** How an outcome is stored that needs no file. */
function smallOutcome(settled: Settled): Outcome | undefined {
  if (settled.state === "failed") return settled;
  const { state, resultType, bytes } = settled;
  if (isLarge(bytes)) return undefined;
  return { state, resultType, result: inlineContent(bytes), digest: digestOf(bytes) };
}

/** Long polls. Any number may wait for the same key, each with a time limit and a signal of its own. */
export class Waiters<T> {
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Set<(outcome: T | undefined) => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many polls are waiting. */
  get count(): number {
    return [...this.#byKey.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Resolves with the outcome, or with undefined when it did not come in time. */
  wait(key: string, timeoutMs: number, signal: AbortSignal): Promise<T | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const waiters = this.#byKey.get(key) ?? new Set();
      this.#byKey.set(key, waiters);
      const settle = (outcome: T | undefined): void => {
        cancelTimer();
        signal.removeEventListener("abort", giveUp);
        waiters.delete(settle);
        if (waiters.size === 0 && this.#byKey.get(key) === waiters) this.#byKey.delete(key);
        resolve(outcome);
      };
      const giveUp = (): void => settle(undefined);
      const cancelTimer = this.#clock.after(timeoutMs, giveUp);
      signal.addEventListener("abort", giveUp, { once: true });
      waiters.add(settle);
    });
  }

  /** Gives an outcome to all that wait for it. */
  settle(key: string, outcome: T): void {
    for (const settle of this.#byKey.get(key) ?? []) settle(outcome);
  }

  /** Ends all waiting without an outcome. */
  releaseAll(): void {
    for (const waiters of this.#byKey.values()) {
      for (const settle of waiters) settle(undefined);
    }
  }
}

/*
 * Ids of requests. Those with a place in a sequence are made from it, so that a retry finds the first
 * attempt even after a restart. Others are made from the idempotency key of the call where there is
 * one, which all attempts of one call share, and are random where there is none.
 */

/** Request `seq` of a model; 0 is its creation. */
export function modelRequestId(modelId: string, seq: number): string {
  return `${modelId}:${seq}`;
}

/** Request `seq` of a sampling session. */
export function samplerRequestId(samplerId: string, seq: number | bigint): string {
  return `${samplerId}:${seq}`;
}

/** Clients of a sampling session number their samples from their own number times this. */
const numbersPerClient = 1_000_000_000n;

/** A client of a sampling session. */
export function samplerClient(samplerId: string, client: bigint): string {
  return `${samplerId}/${client}`;
}

/** The client of a sampling session that a sample belongs to. */
export function samplerClientOf(requestId: string): string | undefined {
  const [, samplerId, seq] = /^(.+:sample:\d+):(\d+)$/.exec(requestId) ?? [];
  if (samplerId === undefined || seq === undefined) return undefined;
  return samplerClient(samplerId, BigInt(seq) / numbersPerClient);
}

/** The sequences of a sample in their order: fixed by the request, so that every receipt of it names the same. */
export function sampleSequenceIds(requestId: string, numSamples: number): string[] {
  return Array.from({ length: numSamples }, (_, index) => `${requestId}-${index}`);
}

/** A request without a place in any sequence. */
export function unsequencedRequestId(owner: string, idempotencyKey: string | null): string {
  if (idempotencyKey === null) return `r-${randomUUID()}`;
  const hash = createHash("sha256").update(JSON.stringify([owner, idempotencyKey]));
  return `r-${hash.digest("hex").slice(0, 32)}`;
}

/** The idempotency key of a call. */
export function idempotencyKeyOf(headers: Headers): string | null {
  const key = headers.get("x-idempotency-key");
  return key === null || key === "" || key.length > 200 ? null : key;
}
