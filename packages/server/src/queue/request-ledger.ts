import { timingSafeEqual } from "node:crypto";
import type { WireTypeName } from "tinker-ts/wire";
import { conflict } from "../errors/api-error.js";
import { DamagedError } from "../errors/damaged-error.js";
import { isStorageFailure } from "../errors/storage-failure.js";
import { withoutDataDir } from "../errors/without-data-dir.js";
import type { Logger } from "../log/logger.js";
import type { Metrics } from "../metrics/metrics.js";
import {
  inlineContent,
  isLarge,
  placeOf,
  readContent,
  storeContent,
  storedBytes,
} from "../store/content.js";
import type {
  FinishedFacts,
  Outcome,
  RequestHead,
  RequestKind,
  Settled,
} from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { Acceptance, type WholeEnding } from "./acceptance.js";
import { digestOf, readPayload, resultDigest, type StoredPayload } from "./canonical-payload.js";
import { Waiters } from "./waiters.js";

/** A request on its way into the store. */
export interface RequestDraft {
  readonly requestId: string;
  readonly owner: string;
  readonly sessionId: string | null;
  readonly modelId: string | null;
  readonly samplerId: string | null;
  readonly seq: number | null;
  readonly kind: RequestKind;
  readonly identity: Uint8Array;
  readonly payload: Uint8Array;
  /** SHA-256 of the payload, where the identity is not made from all of it. */
  readonly digest?: Uint8Array | undefined;
}

const storeRetryMs = 1000;

/**
 * How long a request that was begun is not committed. It takes a moment until the engine's thread has begun: a
 * thread that is called is often put on the core of its caller, and gets it when that one sleeps.
 */
const pauseMs = 1;

/** The same where whoever has sent it waits for the outcome: quick work is committed together with that. */
const maxHeldMs = 100;

/**
 * The book of accepted requests.
 *
 * - A request counts as accepted once it is committed; only then is its id told.
 * - Work on one may begin while it is being committed. Its outcome waits for that; when the commit fails, there
 *   is no request, and what was done for it has to be thrown away. Where the outcome comes soon, both are one commit.
 * - Accepting the same request again changes nothing; another one under the same id is a conflict.
 * - An outcome is told to those who wait only after it is committed.
 */
export class RequestLedger {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly waiters: Waiters<Settled>;
  readonly #pending = new Map<string, RequestHead>();
  /** How it goes with requests that are worked on before they are committed. */
  readonly #accepting = new WeakMap<object, Acceptance>();
  #isSealed = false;

  constructor(store: Store, clock: Clock, logger: Logger, metrics: Metrics) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
    this.#metrics = metrics;
    this.waiters = new Waiters(clock);
  }

  /**
   * Accepts a request. `admit` runs inside the transaction, for new requests only: it refuses by
   * throwing and writes what has to exist together with the request. `begin` may have work on it begun
   * while it is being committed, and says whether it has; whoever sent it likes to wait `holdMs` for its outcome.
   * Returns the head of a new request, or null when it had been accepted before.
   */
  async accept(
    draft: RequestDraft,
    admit: () => void,
    begin?: (head: RequestHead, accepted: Promise<void>) => boolean,
    holdMs = 0,
  ): Promise<RequestHead | null> {
    if (isLarge(draft.payload) && this.#isKnown(draft)) return null;
    const { payload: bytes, digest, ...asked } = draft;
    const payload = await storeContent(bytes, this.#store.blobs);
    const head: RequestHead = {
      ...asked,
      state: "pending",
      payloadBytes: payload.sizeBytes,
      applied: null,
      acceptedAt: this.#clock.now(),
      startedAt: null,
      finishedAt: null,
    };
    const record = (ending: WholeEnding | null): boolean => {
      if (!this.#store.requests.insert(head, payload, digest, ending)) {
        this.#refuseOther(draft, this.#store.requests.head(draft.requestId));
        return false;
      }
      admit();
      ending?.also();
      return true;
    };
    let isNew = false;
    try {
      // Before work on it begins, so that whatever that writes is written behind it.
      const acceptance = new Acceptance(this.#store, {
        record,
        payloadBlob: payload.blob,
        withinMs: begin ? commitWithin(holdMs) : 0,
      });
      const accepted = acceptance.committed().then(() => {
        this.#pending.set(head.requestId, head);
      });
      accepted.catch(() => {});
      this.#accepting.set(head, acceptance);
      if (begin?.(head, accepted)) acceptance.payload = bytes;
      else this.#store.hurry();
      isNew = await acceptance.isNew;
    } finally {
      if (!isNew && payload.blob !== null) await this.#store.blobs.remove([payload.blob]);
    }
    return isNew ? head : null;
  }

  /** Resolves when a request that may have been begun early is accepted; rejects when it never will be. */
  async accepted(head: object): Promise<void> {
    const acceptance = this.#accepting.get(head);
    if (acceptance) this.#store.hurry();
    await acceptance?.committed();
  }

  /** Takes a request in that was accepted before this process started. */
  resume(head: RequestHead): void {
    this.#pending.set(head.requestId, head);
  }

  /** A request by its id; what is pending is known without asking the store. */
  find(requestId: string): RequestHead | undefined {
    return this.#pending.get(requestId) ?? this.#store.requests.head(requestId);
  }

  /** The payload of a request that has not finished or is in the journal. */
  async payload(requestId: string): Promise<Uint8Array> {
    return readPayload(this.stored(requestId));
  }

  /** That of a request which may still be on its way into the store. */
  async payloadOf(head: RequestHead): Promise<Uint8Array> {
    const acceptance = this.#accepting.get(head);
    if (acceptance?.payload) return acceptance.payload;
    await acceptance?.committed();
    return this.payload(head.requestId);
  }

  /** Where that is, for those who read it by themselves. */
  stored(requestId: string): StoredPayload {
    const row = this.#store.requests.payload(requestId);
    const stored = row && storedBytes(row.content, this.#store.blobs);
    if (!stored) throw new DamagedError(`the payload of request ${requestId}`, "is missing");
    const { kind, identity, digest } = row;
    return { stored, kind, identity, digest };
  }

  /** Commits how a request ended, together with what `also` writes, and tells those who wait. */
  async finish(
    request: Pick<RequestHead, "requestId" | "kind" | "payloadBytes" | "acceptedAt">,
    result: Settled,
    facts: FinishedFacts,
    also: () => void = () => {},
  ): Promise<void> {
    if (this.#isSealed) return;
    const settled =
      result.state === "done"
        ? result
        : { ...result, error: withoutDataDir(result.error, this.#store.dataDir) };
    const outcome =
      smallOutcome(settled) ?? (await this.#untilStored(() => this.#largeOutcome(settled)));
    const acceptance = this.#accepting.get(request);
    const isAlong = acceptance && (await acceptance.endWith({ outcome, facts, also }));
    const unused = isAlong
      ? unusedPayload(acceptance.payloadBlob, facts)
      : await this.#untilStored(() =>
          this.#store.write(() => {
            also();
            return this.#store.requests.finish(request, outcome, facts);
          }),
        );
    // Whoever sent it learns in this very moment that it is accepted, and is about to wait for it.
    if (isAlong) await new Promise<void>((resolve) => process.nextTick(resolve));
    this.#pending.delete(request.requestId);
    this.waiters.settle(request.requestId, settled);
    this.#metrics.later(() => this.#metrics.noteFinished(request, settled.state, facts));
    if (unused !== null) await this.#store.blobs.remove([unused]);
  }

  /** How a finished request ended, or undefined when it is pending, unknown or its answer was dropped. */
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

  #isKnown(draft: RequestDraft): boolean {
    const known = this.#store.requests.head(draft.requestId);
    this.#refuseOther(draft, known);
    return known !== undefined;
  }

  /** Refuses a request whose id another one has. */
  #refuseOther({ requestId, identity }: RequestDraft, known: RequestHead | undefined): void {
    // Ids hold the id of a model or the owner's name, so whoever knows one owns the request.
    if (!known || timingSafeEqual(known.identity, identity)) return;
    throw conflict(
      `request ${requestId} was already made with another content (${known.kind}); a sequence number can be used once`,
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

/** How long the commit of a request that is begun may take, when its sender likes to wait `holdMs` for the outcome. */
function commitWithin(holdMs: number): number {
  return Math.max(pauseMs, Math.min(holdMs, maxHeldMs));
}

/** The file of a payload that is not kept. */
function unusedPayload(blob: string | null, { applied }: FinishedFacts): string | null {
  return applied === null ? blob : null;
}

/** How an outcome is stored that needs no file. */
function smallOutcome(settled: Settled): Outcome | undefined {
  if (settled.state === "failed") return settled;
  const { state, resultType, bytes } = settled;
  if (isLarge(bytes)) return undefined;
  return { state, resultType, result: inlineContent(bytes), digest: digestOf(bytes) };
}
