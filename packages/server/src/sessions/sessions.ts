import type { Principal } from "../auth/principal.js";
import { badRequest, gone, notFound, tooMany } from "../errors/api-error.js";
import type { ServerLimits } from "../prices.js";
import type { Logger } from "../log/logger.js";
import type { Recorder } from "../recording/recorder.js";
import type { Session } from "../store/sessions-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { randomUUID } from "node:crypto";
import { stringifyJson, type WireValue } from "tinker-ts/wire";

const maxNameCharacters = 1000;
/** What is kept of the text that a finished session has; tracebacks are longer. */
const maxDetailCharacters = 10_000;

/** When sessions were last asked about longer ago than this, the server was not listening all the time. */
const maxRoundMs = 2000;

interface OpenSession {
  readonly owner: string;
  lastSeenAt: number;
}

/** What sessions work with. */
export interface SessionsParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: ServerLimits;
  readonly logger: Logger;
  readonly recorder: Recorder;
}

/**
 * Sessions and their signs of life.
 *
 * - Every request that names a session is a sign of life, a heartbeat is only the cheapest one.
 * - Only time in which the server could have received a heartbeat counts against a session.
 * - When a session was last seen is kept in memory: after a restart all of them get a fresh start.
 * - A finished session takes nothing new, like a closed one; what it has accepted is carried out before
 *   it is closed. Samplers that another process has joined go on for as long as they are used.
 */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #open = new Map<string, OpenSession>();
  readonly #finishing = new Map<string, OpenSession>();
  readonly #time: ListeningTime;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#time = new ListeningTime(parts.clock, maxRoundMs);
    const { now } = this.#time;
    for (const { sessionId, owner, finish } of parts.store.sessions.open()) {
      const sessions = finish ? this.#finishing : this.#open;
      sessions.set(sessionId, { owner, lastSeenAt: now });
    }
  }

  get count(): number {
    return this.#open.size;
  }

  /** Opens a session; a repeated call with the same idempotency key gets the one made before. */
  async create(
    caller: Principal,
    request: WireValue<"CreateSessionRequest">,
    idempotencyKey: string | null,
  ): Promise<string> {
    const { store, clock, limits, logger } = this.#parts;
    checkMetadata("user_metadata", request.userMetadata);
    checkMetadata("tags", request.tags);
    const { displayName } = request;
    if (displayName !== null && displayName.length > maxNameCharacters) {
      const { length } = displayName;
      throw badRequest("display_name", `has ${length} characters; at most ${maxNameCharacters}`);
    }
    const mine = [...this.#open.values()].filter(({ owner }) => owner === caller.owner);
    if (mine.length >= limits.maxSessions) {
      throw tooMany(`${mine.length} sessions are open; close some or let them time out`, 5000);
    }
    const session: Session = {
      sessionId: randomUUID(),
      owner: caller.owner,
      tags: request.tags,
      userMetadata: request.userMetadata,
      sdkVersion: request.sdkVersion,
      projectId: request.projectId,
      displayName,
      createdAt: clock.now(),
      finish: null,
      closedAt: null,
      closeReason: null,
    };
    const sessionId = await store.write(() => {
      const known =
        idempotencyKey === null ? undefined : store.sessions.byKey(caller.owner, idempotencyKey);
      if (known) return known.sessionId;
      store.sessions.insert(session, idempotencyKey);
      store.audit.add({ at: session.createdAt, owner: caller.owner, event: "session.created" });
      return session.sessionId;
    });
    if (sessionId === session.sessionId) {
      this.#open.set(sessionId, { owner: caller.owner, lastSeenAt: this.#time.now });
      this.#notify(caller.owner, sessionId, "opened");
      logger.info("session opened", { session: sessionId, owner: caller.owner });
    }
    return sessionId;
  }

  /** Makes sure that a session is open and the caller's, and notes the sign of life. */
  touch(sessionId: string, caller: Principal): void {
    const open = this.#open.get(sessionId);
    if (open?.owner === caller.owner) {
      open.lastSeenAt = this.#time.now;
      return;
    }
    const session = open ? undefined : this.#parts.store.sessions.get(sessionId);
    if (session?.owner !== caller.owner) throw notFound(`session ${sessionId}`);
    throw gone(closedMessage(session));
  }

  /**
   * Notes that the program of a session has ended; the first reason stays. Repeating it is fine, also when the
   * session was closed meanwhile: its client cannot do anything about an error.
   */
  async finish(
    sessionId: string,
    caller: Principal,
    { reason, detail }: WireValue<"FinishSessionRequest">,
  ): Promise<void> {
    const { store, clock, logger } = this.#parts;
    const session = store.sessions.get(sessionId);
    if (session?.owner !== caller.owner) throw notFound(`session ${sessionId}`);
    if (session.finish !== null || session.closedAt !== null) return;
    const finish = {
      at: clock.now(),
      reason: reason.type.slice(0, maxNameCharacters),
      detail: detail && detail.slice(0, maxDetailCharacters),
    };
    await store.write(() => store.sessions.finish(sessionId, finish));
    // Another attempt of the same call, or the janitor, may have come first.
    if (!this.#open.has(sessionId)) return;
    this.forget(sessionId);
    this.#finishing.set(sessionId, { owner: caller.owner, lastSeenAt: this.#time.now });
    logger.info("session finished", { session: sessionId, reason: finish.reason });
  }

  /** Finished sessions that are not closed yet. */
  finishing(): string[] {
    return [...this.#finishing.keys()];
  }

  /** Like `touch`, for a sampler: one that has been joined outlives the end of its session's program. */
  touchSampler(samplerId: string, sessionId: string, caller: Principal): void {
    const finishing = this.#finishing.get(sessionId);
    const goesOn =
      finishing?.owner === caller.owner && this.#parts.store.samplers.isJoined(samplerId);
    if (goesOn) finishing.lastSeenAt = this.#time.now;
    else this.touch(sessionId, caller);
  }

  /** How long ago the joined samplers of a finished session were used. */
  unusedMs(sessionId: string): number {
    return this.#time.now - (this.#finishing.get(sessionId)?.lastSeenAt ?? 0);
  }

  /** When an open session gave its last sign of life. */
  lastSeenAt(sessionId: string): number | undefined {
    const open = this.#open.get(sessionId);
    return open && this.#parts.clock.now() - (this.#time.now - open.lastSeenAt);
  }

  isOpen(sessionId: string): boolean {
    return this.#open.has(sessionId);
  }

  /** Whether what a session has accepted is carried out. */
  isServed(sessionId: string): boolean {
    return this.#open.has(sessionId) || this.#finishing.has(sessionId);
  }

  /** Sessions that gave no sign of life for too long; to be asked about once a second or so. */
  idle(): string[] {
    this.#time.tick();
    const deadline = this.#time.now - this.#parts.limits.sessionTimeoutMs;
    return [...this.#open]
      .filter(([, { lastSeenAt }]) => lastSeenAt < deadline)
      .map(([sessionId]) => sessionId);
  }

  all(): string[] {
    return [...this.#open.keys(), ...this.#finishing.keys()];
  }

  #notify(owner: string, id: string, change: "opened" | "closed"): void {
    this.#parts.recorder.hub.publish(owner, "runs", { kind: "session", id, change });
  }

  /** Takes a session out of the open ones; what belongs to it is the caller's business. */
  forget(sessionId: string): void {
    const open = this.#open.get(sessionId);
    this.#open.delete(sessionId);
    this.#finishing.delete(sessionId);
    if (open) this.#notify(open.owner, sessionId, "closed");
  }
}

/** The answer to clients of a closed session. */
export function closedMessage(
  session: Pick<Session, "sessionId" | "closedAt" | "closeReason"> & Partial<Session>,
): string {
  const { sessionId, finish } = session;
  const [what, at, why] = finish
    ? ["finished by its client", finish.at, finish.reason]
    : ["closed", session.closedAt, session.closeReason ?? "it ended"];
  const when = at === null ? "" : ` at ${new Date(at).toISOString()}`;
  return `session ${sessionId} was ${what}${when}: ${why}; create a new client and continue from a checkpoint`;
}

/**
 * Time during which the server could listen. It grows by the pieces between two ticks, and a piece that is
 * longer than ticks can be apart counts as no more than that: the process was stopped, the machine slept
 * or something held the event loop, and no heartbeat could arrive meanwhile.
 */
class ListeningTime {
  readonly #clock: Clock;
  readonly #maxPieceMs: number;
  #tickedAt: number;
  #now = 0;

  constructor(clock: Clock, maxPieceMs: number) {
    this.#clock = clock;
    this.#maxPieceMs = maxPieceMs;
    this.#tickedAt = clock.elapsed();
  }

  /** Milliseconds of listening, as of the last tick. */
  get now(): number {
    return this.#now;
  }

  tick(): void {
    const at = this.#clock.elapsed();
    this.#now += Math.min(at - this.#tickedAt, this.#maxPieceMs);
    this.#tickedAt = at;
  }
}

const maxCharacters = 65_536;

/** Facts of the user are kept as they are, but they are facts and not data. */
export function checkMetadata(field: string, value: unknown): void {
  const { length } = stringifyJson(value);
  if (length <= maxCharacters) return;
  throw badRequest(field, `is ${length} characters of JSON; at most ${maxCharacters} are kept`);
}
