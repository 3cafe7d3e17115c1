import { timingSafeEqual } from "node:crypto";
import type { WireTypeName } from "tinker-ts/wire";
import { conflict } from "../errors/api-error.js";
import { DamagedError } from "../errors/damaged-error.js";
import { isStorageFailure } from "../errors/storage-failure.js";
import { withoutDataDir } from "../errors/without-data-dir.js";
import type { Logger } from "../log/logger.js";
import type { Metrics } from "../metrics/metrics.js";
import { inlineContent, isLarge, placeOf, readContent, storeContent } from "../store/content.js";
import type {
  FinishedFacts,
  Outcome,
  RequestHead,
  RequestKind,
  Settled,
} from "../store/requests-table.js";
import type { CommitTime } from "../store/group-commit.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { checkedPayload, digestOf, resultDigest, type StoredPayload } from "./canonical-payload.js";
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
 * The book of accepted requests.
 *
 * - A request counts as accepted once it is committed; only then is its id told.
 * - Work on one may begin while it is being committed. Its outcome waits for that; when the commit fails, there
 *   is no request, and what was done for it has to be thrown away.
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
  readonly #accepting = new WeakMap<object, Promise<void>>();
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
   * while it is being committed, and says whether it has.
   * Returns the head of a new request, or null when it had been accepted before.
   */
  async accept(
    draft: RequestDraft,
    admit: () => void,
    begin: (head: RequestHead, accepted: Promise<void>) => boolean = () => false,
  ): Promise<RequestHead | null> {
    if (isLarge(draft.payload) && this.#isKnown(draft)) return null;
    const payload = await storeContent(draft.payload, this.#store.blobs);
    const head: RequestHead = {
      ...draft,
      state: "pending",
      payloadBytes: payload.sizeBytes,
      applied: null,
      acceptedAt: this.#clock.now(),
      startedAt: null,
      finishedAt: null,
    };
    let isNew = false;
    try {
      const record = (): boolean => {
        if (this.#isKnown(draft)) return false;
        admit();
        this.#store.requests.insert(head, payload, draft.digest);
        return true;
      };
      let write!: (time: CommitTime) => void;
      const writing = new Promise<boolean>((resolve) => {
        write = (time) => resolve(this.#store.write(record, time));
      });
      const accepted = writing.then((isWritten) => {
        if (!isWritten) throw new Error(`request ${head.requestId} was accepted before`);
        this.#pending.set(head.requestId, head);
      });
      accepted.catch(() => {});
      this.#accepting.set(head, accepted);
      write(begin(head, accepted) ? "in a pause" : "next");
      isNew = await writing;
    } finally {
      if (!isNew && payload.blob !== null) await this.#store.blobs.remove([payload.blob]);
    }
    return isNew ? head : null;
  }

  /** Resolves when a request that may have been begun early is accepted; rejects when it never will be. */
  async accepted(head: object): Promise<void> {
    const accepting = this.#accepting.get(head);
    if (accepting) this.#store.hurry();
    await accepting;
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
    return checkedPayload(await this.stored(requestId));
  }

  /** The same, for those who make sure by themselves that it is what was accepted. */
  async stored(requestId: string): Promise<StoredPayload> {
    const row = this.#store.requests.payload(requestId);
    const bytes = row && (await readContent(row.content, this.#store.blobs));
    if (!bytes) throw new DamagedError(`the payload of request ${requestId}`, "is missing");
    const { kind, identity, digest, content } = row;
    return { bytes, kind, identity, digest, file: placeOf(content) };
  }

  /** Commits how a request ended, together with what `also` writes, and tells those who wait. */
  async finish(
    request: Pick<RequestHead, "requestId" | "kind" | "payloadBytes" | "acceptedAt">,
    result: Settled,
    facts: FinishedFacts,
    also: () => void = () => {},
  ): Promise<void> {
    if (this.#isSealed) return;
    await this.accepted(request);
    const settled =
      result.state === "done"
        ? result
        : { ...result, error: withoutDataDir(result.error, this.#store.dataDir) };
    const outcome =
      smallOutcome(settled) ?? (await this.#untilStored(() => this.#largeOutcome(settled)));
    const unused = await this.#untilStored(() =>
      this.#store.write(() => {
        also();
        return this.#store.requests.finish(request, outcome, facts);
      }),
    );
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
    if (!known) return false;
    // Ids hold the id of a model or the owner's name, so whoever knows one owns the request.
    if (timingSafeEqual(known.identity, draft.identity)) return true;
    throw conflict(
      `request ${draft.requestId} was already made with another content (${known.kind}); a sequence number can be used once`,
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
