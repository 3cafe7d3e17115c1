import type { WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Context } from "../context/context.js";
import { gone, notFound, tooMany } from "../errors/api-error.js";
import type { QueueNote } from "../queue/queue-note.js";
import type { RequestHead, Settled } from "../store/requests-table.js";
import type { Sessions } from "./sessions.js";

/** What a poll is answered. */
export type PollAnswer =
  | { readonly kind: "settled"; readonly settled: Settled }
  | { readonly kind: "announced"; readonly sizeBytes: number }
  | { readonly kind: "pending"; readonly note: QueueNote };

const noteAfterMs = 1000;
const maxNotes = 64;

/** Results of accepted requests, for as long as they are kept. */
export class Futures {
  readonly #context: Context;
  readonly #sessions: Sessions;
  readonly #noteFor: (request: RequestHead) => QueueNote;
  /** What was fetched, and when, since that was last put on record. */
  readonly #fetched = new Map<string, number>();
  /** How many wait, by owner. */
  readonly #waiting = new Map<string, number>();
  #cancelNote = (): void => {};

  constructor(context: Context, sessions: Sessions, noteFor: (request: RequestHead) => QueueNote) {
    this.#context = context;
    this.#sessions = sessions;
    this.#noteFor = noteFor;
  }

  /** Waits for a result, but not longer than a poll may wait. */
  async retrieve(
    caller: Principal,
    request: WireValue<"FutureRetrieveRequest">,
    signal: AbortSignal,
  ): Promise<PollAnswer> {
    const head = this.#find(request.requestId, caller);
    if (head.sessionId !== null && this.#sessions.isOpen(head.sessionId)) {
      this.#sessions.touch(head.sessionId, caller);
    }
    const settled =
      head.state === "pending" ? await this.#poll(head, signal) : await this.#read(head);
    if (!settled) return { kind: "pending", note: this.#noteFor(head) };
    const { inlineResultBytes } = this.#context.limits;
    const sizeBytes = settled.state === "done" ? settled.bytes.length : 0;
    if (request.allowMetadataOnly && sizeBytes > inlineResultBytes) {
      return { kind: "announced", sizeBytes };
    }
    this.#markFetched(head.requestId);
    return { kind: "settled", settled };
  }

  /** How an accepted request ended, if that is known within a short time and small enough to tell at once. */
  async soon(
    caller: Principal,
    requestId: string,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Settled | undefined> {
    const { ledger, limits } = this.#context;
    // Whoever asks for a result needs the places of those who only would like to have it.
    if (!this.#hasPlace(caller.owner, 1 / 4)) return undefined;
    const head = ledger.find(requestId);
    if (head?.owner !== caller.owner) return undefined;
    const settled =
      head.state === "pending"
        ? await this.#wait(head, waitMs, signal)
        : await ledger.outcome(requestId);
    if (!settled) return undefined;
    if (settled.state === "done" && settled.bytes.length > limits.inlineResultBytes) {
      return undefined;
    }
    this.#markFetched(requestId);
    return settled;
  }

  #find(requestId: string, caller: Principal): RequestHead {
    const head = this.#context.ledger.find(requestId);
    const isOwn = head ? head.owner === caller.owner : this.#isForgotten(requestId, caller);
    if (!isOwn) throw notFound(`request ${requestId}`);
    if (head && head.state !== "gone") return head;
    throw gone(`the result of request ${requestId} is no longer kept; make the request again`);
  }

  /** Whether an id names a request that finished so long ago that no record of it is left. */
  #isForgotten(requestId: string, caller: Principal): boolean {
    const [, modelId = "", seq] = /^(.+:train:\d+):(\d+)$/.exec(requestId) ?? [];
    const model = this.#context.store.models.get(modelId);
    return model?.owner === caller.owner && Number(seq) < model.nextSeq;
  }

  #poll(head: RequestHead, signal: AbortSignal): Promise<Settled | undefined> {
    const { owner } = head;
    if (this.#hasPlace(owner, 1 / 2)) {
      return this.#wait(head, this.#context.limits.longPollMs, signal);
    }
    throw tooMany(`${this.#waiting.get(owner) ?? 0} of your polls are waiting already`, 1000);
  }

  #wait(
    { requestId, owner }: RequestHead,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Settled | undefined> {
    this.#waiting.set(owner, (this.#waiting.get(owner) ?? 0) + 1);
    const waiting = this.#context.ledger.waiters.wait(requestId, waitMs, signal);
    void waiting.then(() => {
      const left = (this.#waiting.get(owner) ?? 0) - 1;
      if (left > 0) this.#waiting.set(owner, left);
      else this.#waiting.delete(owner);
    });
    return waiting;
  }

  /** Whether an owner may wait once more; each gets a part of what the others leave. */
  #hasPlace(owner: string, part: number): boolean {
    const { ledger, limits } = this.#context;
    const own = this.#waiting.get(owner) ?? 0;
    return own < (limits.maxWaitingPolls - (ledger.waiters.count - own)) * part;
  }

  async #read(head: RequestHead): Promise<Settled> {
    const settled = await this.#context.ledger.outcome(head.requestId);
    if (settled) return settled;
    throw gone(`the result of request ${head.requestId} is no longer kept; make the request again`);
  }

  /** Puts on record what was fetched until now. */
  async noteFetched(): Promise<void> {
    this.#cancelNote();
    const { store, logger } = this.#context;
    const fetched = [...this.#fetched];
    this.#fetched.clear();
    if (fetched.length === 0) return;
    await store
      .write(() => {
        for (const [requestId, at] of fetched) store.requests.markFetched(requestId, at);
      })
      .catch((error: unknown) => logger.warn("cannot note fetches", { error: String(error) }));
  }

  /** Only how long a result is kept depends on it, so that many fetches share a transaction. */
  #markFetched(requestId: string): void {
    const { clock } = this.#context;
    if (this.#fetched.size === 0) {
      this.#cancelNote = clock.after(noteAfterMs, () => void this.noteFetched());
    }
    this.#fetched.set(requestId, clock.now());
    if (this.#fetched.size >= maxNotes) void this.noteFetched();
  }
}
