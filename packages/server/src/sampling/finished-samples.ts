import type { WireInput, WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import { badRequest, notFound, tooMany } from "../errors/api-error.js";
import { type Journal, samplerClient, samplerClientOf } from "../journal/journal.js";
import type { ServerLimits } from "../prices.js";
import type { ServerScheduler } from "../scheduler.js";
import type { Sessions } from "../sessions/sessions.js";
import type { SettledSample } from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";

/** Samples that are looked at or reported at a time. */
const pageSize = 1000;
/** Official clients wait 45 s for an answer. */
const maxHeldMs = 30_000;

/** What finished samples are found with. */
export interface FinishedSamplesParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly sessions: Sessions;
  readonly scheduler: ServerScheduler;
  readonly clock: Clock;
  readonly limits: ServerLimits;
}

/** Which samples of a sampling session have finished, for clients that poll for all of theirs together. */
export class FinishedSamples {
  readonly #parts: FinishedSamplesParts;

  constructor(parts: FinishedSamplesParts) {
    this.#parts = parts;
  }

  /** Lists what has finished behind a cursor, as soon as anything has, but waits no longer than a poll may. */
  async list(
    caller: Principal,
    { target, prevCursor, timeout }: WireValue<"FuturesRetrieveRequest">,
    signal: AbortSignal,
  ): Promise<WireInput<"FuturesRetrieveResponse">> {
    const { store, journal, sessions, scheduler, clock, limits } = this.#parts;
    const { samplingSessionId: samplerId, clonedSamplerId } = target;
    if (prevCursor < 0) throw badRequest("prev_cursor", "must be 0 or more");
    if (clonedSamplerId < 0) throw badRequest("target.cloned_sampler_id", "must be 0 or more");
    if (timeout !== null && timeout < 0) throw badRequest("timeout", "must be 0 or more");
    const sampler = store.samplers.get(samplerId);
    if (sampler?.owner !== caller.owner) throw notFound(`sampling session ${samplerId}`);
    if (sessions.isOpen(sampler.sessionId)) sessions.touch(sampler.sessionId, caller);

    const client = samplerClient(samplerId, BigInt(clonedSamplerId));
    const askedMs = (timeout ?? Infinity) * 1000;
    const endAt = clock.elapsed() + Math.min(limits.longPollMs, maxHeldMs, askedMs);
    for (;;) {
      const { finished, cursor } = this.#read(samplerId, client, prevCursor);
      const leftMs = endAt - clock.elapsed();
      if (finished.length > 0 || leftMs <= 0 || signal.aborted) {
        return { completions: finished.map(toCompletion), cursor };
      }
      const poll = { resource: "polls", owner: caller.owner } as const;
      const turn = scheduler.tryTurn(poll, 1 / 2);
      if (!turn) {
        throw tooMany(`${scheduler.turnsOf(poll)} of your polls are waiting already`, 1000);
      }
      const waiting = journal.waitForClient(client, leftMs, signal);
      if (!(await waiting.finally(() => turn.end()))) return { completions: [], cursor };
    }
  }

  /** Other clients of the session may have finished many samples meanwhile; the cursor passes them. */
  #read(
    samplerId: string,
    client: string,
    prevCursor: number,
  ): { finished: SettledSample[]; cursor: number } {
    let cursor = prevCursor;
    for (;;) {
      const page = this.#parts.store.requests.settledSamples(samplerId, cursor, pageSize);
      cursor = page.at(-1)?.settledNo ?? cursor;
      const finished = page.filter(({ requestId }) => samplerClientOf(requestId) === client);
      if (finished.length > 0 || page.length < pageSize) return { finished, cursor };
    }
  }
}

/** A result that was dropped is reported as failed: fetching it says that the request has to be made again. */
function toCompletion({ requestId, state, sizeBytes }: SettledSample) {
  return state === "done"
    ? { state: "finished" as const, requestId, responsePayloadUncompressedSize: sizeBytes }
    : { state: "failed" as const, requestId };
}
