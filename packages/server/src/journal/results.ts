import { encodeJson, hasProto, type WireInput, type WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Workers } from "../workers/workers.js";
import { gone, notFound, tooMany } from "../errors/api-error.js";
import { bytesResponse, jsonResponse, typedResponse } from "../http/answers.js";
import type { Call, HandlersOf } from "../http/call.js";
import type { ServerLimits } from "../prices.js";
import type { Logger } from "../log/logger.js";
import type { ServerScheduler } from "../scheduler.js";
import type { Sessions } from "../sessions/sessions.js";
import type { RequestRow, Settled } from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import type { Journal, QueueNote } from "./journal.js";

const noteAfterMs = 1000;
const maxNotes = 64;

/** Longest time for which the answer to an accepted request is held back. */
const maxHoldMs = 1000;

/** What results are returned with. */
export interface ResultsParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly sessions: Sessions;
  readonly scheduler: ServerScheduler;
  /** Turns results into JSON. */
  readonly workers: Workers;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
  /** Why a request has not finished yet. */
  readonly noteFor: (request: RequestRow) => QueueNote;
}

/** Results of accepted requests, for as long as they are kept. */
export class Results {
  readonly #parts: ResultsParts;
  /** When results were fetched that are not recorded as fetched yet. */
  readonly #fetched = new Map<string, number>();
  #cancelNote = (): void => {};

  constructor(parts: ResultsParts) {
    this.#parts = parts;
  }

  /**
   * Has a request accepted and answers it. A client that sends how long it waits gets the result itself, as
   * from a poll, when that is there by then; a header names the request.
   */
  async answer(
    { caller, headers, signal }: Call,
    accept: () => Promise<WireInput<"UntypedAPIFuture">>,
  ): Promise<WireInput<"UntypedAPIFuture"> | Response> {
    const { clock } = this.#parts;
    const holdMs = holdMsOf(headers);
    const endMs = clock.elapsed() + holdMs;
    const accepted = await accept();
    if (holdMs === 0) return accepted;
    const { requestId } = accepted;
    const restMs = Math.max(0, endMs - clock.elapsed());
    const settled = await this.#soon(caller, requestId, restMs, signal);
    if (!settled) return accepted;
    const extra = { "x-tinker-result-of": requestId, ...timingOf(settled) };
    if (settled.state === "failed") {
      const { error, category } = settled;
      return jsonResponse(encodeJson("RequestFailedResponse", { error, category }), 200, extra);
    }
    const { resultType, bytes } = settled;
    const mediaType = hasProto(resultType) ? "application/x-protobuf" : "application/json";
    return bytesResponse(bytes, mediaType, extra);
  }

  /** Answers a poll: waits for the result, but not longer than a poll may wait. */
  async poll({
    caller,
    body,
    headers,
    signal,
  }: Call<WireValue<"FutureRetrieveRequest">>): Promise<Response> {
    const { sessions, limits, noteFor } = this.#parts;
    const request = this.#find(body.requestId, caller);
    const { requestId, sessionId } = request;
    if (sessionId !== null && sessions.isOpen(sessionId)) sessions.touch(sessionId, caller);
    const settled =
      request.state === "pending"
        ? await this.#waitAsPoll(request, signal)
        : await this.#read(request);
    if (!settled) {
      const { queueState, reason: queueStateReason } = noteFor(request);
      const again = { type: "try_again", requestId, queueState, queueStateReason } as const;
      return typedResponse("TryAgainResponse", again, 408);
    }
    const sizeBytes = settled.state === "done" ? settled.bytes.length : 0;
    if (body.allowMetadataOnly && sizeBytes > limits.inlineResultBytes) {
      return typedResponse("CompleteMetadataResponse", {
        status: "complete_metadata",
        responsePayloadSize: sizeBytes,
      });
    }
    this.#markFetched(requestId);
    const acceptsProto = headers.get("accept")?.includes("application/x-protobuf") ?? false;
    return this.#settledResponse(settled, acceptsProto, caller.owner);
  }

  /** Records what was fetched until now. */
  async noteFetched(): Promise<void> {
    this.#cancelNote();
    const { store, logger } = this.#parts;
    const fetched = [...this.#fetched];
    this.#fetched.clear();
    if (fetched.length === 0) return;
    await store
      .write(() => {
        for (const [requestId, at] of fetched) store.requests.markFetched(requestId, at);
      })
      .catch((error: unknown) => logger.warn("cannot note fetches", { error: String(error) }));
  }

  /** The outcome of an accepted request, if it is there within a short time and small. */
  async #soon(
    caller: Principal,
    requestId: string,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Settled | undefined> {
    const { journal, limits } = this.#parts;
    const request = journal.find(requestId);
    if (request?.owner !== caller.owner) return undefined;
    // Polls for results need the turns of those that would only like to have one.
    const settled =
      request.state === "pending"
        ? await this.#wait(request, waitMs, signal, 1 / 4)
        : await journal.outcome(requestId);
    if (settled?.state === "done" && settled.bytes.length > limits.inlineResultBytes) {
      return undefined;
    }
    if (settled) this.#markFetched(requestId);
    return settled;
  }

  #find(requestId: string, caller: Principal): RequestRow {
    const request = this.#parts.journal.find(requestId);
    const isOwn = request
      ? request.owner === caller.owner
      : this.#isForgotten(requestId, caller.owner);
    if (!isOwn) throw notFound(`request ${requestId}`);
    if (request && request.state !== "gone") return request;
    throw resultGone(requestId);
  }

  /** True when an id names a request that finished so long ago that no record of it is left. */
  #isForgotten(requestId: string, owner: string): boolean {
    const [, modelId = "", seq] = /^(.+:train:\d+):(\d+)$/.exec(requestId) ?? [];
    const model = this.#parts.store.models.get(modelId);
    return model?.owner === owner && Number(seq) < model.nextSeq;
  }

  #waitAsPoll(request: RequestRow, signal: AbortSignal): Promise<Settled | undefined> {
    const { scheduler, limits } = this.#parts;
    const waiting = this.#wait(request, limits.longPollMs, signal, 1 / 2);
    if (waiting) return waiting;
    const own = scheduler.turnsOf({ resource: "polls", owner: request.owner });
    throw tooMany(`${own} of your polls are waiting already`, 1000);
  }

  /** Waits for an outcome, while the owner has less than this share of the polls that others leave. */
  #wait(
    { requestId, owner }: RequestRow,
    waitMs: number,
    signal: AbortSignal,
    share: number,
  ): Promise<Settled | undefined> | undefined {
    const { scheduler, journal } = this.#parts;
    const turn = scheduler.tryTurn({ resource: "polls", owner }, share);
    return turn && journal.wait(requestId, waitMs, signal).finally(() => turn.end());
  }

  async #read({ requestId }: RequestRow): Promise<Settled> {
    const settled = await this.#parts.journal.outcome(requestId);
    if (settled) return settled;
    throw resultGone(requestId);
  }

  /** Only how long a result is kept depends on it, so that many fetches share a transaction. */
  #markFetched(requestId: string): void {
    const { clock } = this.#parts;
    if (this.#fetched.size === 0) {
      this.#cancelNote = clock.after(noteAfterMs, () => void this.noteFetched());
    }
    this.#fetched.set(requestId, clock.now());
    if (this.#fetched.size >= maxNotes) void this.noteFetched();
  }

  /** Results of types with a binary form are kept in it; all others are kept as JSON. */
  async #settledResponse(
    settled: Settled,
    acceptsProto: boolean,
    owner: string,
  ): Promise<Response> {
    if (settled.state === "failed") {
      const { error, category } = settled;
      return typedResponse("RequestFailedResponse", { error, category });
    }
    const { resultType, bytes } = settled;
    const timing = timingOf(settled);
    if (!hasProto(resultType)) return bytesResponse(bytes, "application/json", timing);
    if (acceptsProto) return bytesResponse(bytes, "application/x-protobuf", timing);
    const json = await this.#parts.workers.resultJson(owner, resultType, bytes);
    return bytesResponse(json, "application/json", timing);
  }
}

/** The route that polls for one result. */
export function resultRoutes(results: Results): HandlersOf<"retrieveFuture"> {
  return { retrieveFuture: (call) => results.poll(call) };
}

/** How long a client waits for the result itself; 0 where it does not say so. */
function holdMsOf(headers: Headers): number {
  const holdMs = Number(headers.get("x-tinker-hold-ms") ?? 0);
  return holdMs > 0 ? Math.min(holdMs, maxHoldMs) : 0;
}

/** The time of the engine, in the header that browsers and proxies read. */
function timingOf(settled: Settled): Record<string, string> {
  if (settled.state === "failed" || settled.engineMs === undefined) return {};
  return { "server-timing": `engine;dur=${settled.engineMs.toFixed(2)}` };
}

function resultGone(requestId: string): Error {
  return gone(`the result of request ${requestId} is no longer kept; make the request again`);
}
