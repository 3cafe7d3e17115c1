import { randomUUID } from "node:crypto";
import type { WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { Context } from "../context/context.js";
import { gone, notFound, tooMany } from "../errors/api-error.js";
import type { Session } from "../store/sessions-table.js";
import { ListeningTime } from "./listening-time.js";
import { checkMetadata } from "./user-metadata.js";

/** When sessions were last asked about longer ago than this, the server was not listening all the time. */
const maxRoundMs = 2000;

interface OpenSession {
  readonly owner: string;
  lastSeenAt: number;
}

/**
 * Sessions and their signs of life.
 *
 * - Every request that names a session is a sign of life, a heartbeat is only the cheapest one.
 * - Only time in which the server could have heard one counts against a session.
 * - When a session was last seen is kept in memory: after a restart all of them get a fresh start.
 */
export class Sessions {
  readonly #context: Context;
  readonly #open = new Map<string, OpenSession>();
  readonly #time: ListeningTime;

  constructor(context: Context) {
    this.#context = context;
    this.#time = new ListeningTime(context.clock, maxRoundMs);
    const { now } = this.#time;
    for (const { sessionId, owner } of context.store.sessions.open()) {
      this.#open.set(sessionId, { owner, lastSeenAt: now });
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
    const { store, clock, limits, logger } = this.#context;
    checkMetadata("user_metadata", request.userMetadata);
    checkMetadata("tags", request.tags);
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
      createdAt: clock.now(),
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
      this.#tell(caller.owner, sessionId, "opened");
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
    const session = open ? undefined : this.#context.store.sessions.get(sessionId);
    if (session?.owner !== caller.owner) throw notFound(`session ${sessionId}`);
    throw gone(closedMessage(session));
  }

  /** When an open session gave its last sign of life. */
  lastSeenAt(sessionId: string): number | undefined {
    const open = this.#open.get(sessionId);
    return open && this.#context.clock.now() - (this.#time.now - open.lastSeenAt);
  }

  isOpen(sessionId: string): boolean {
    return this.#open.has(sessionId);
  }

  /** Sessions that gave no sign of life for too long; to be asked about once a second or so. */
  idle(): string[] {
    this.#time.tick();
    const deadline = this.#time.now - this.#context.limits.sessionTimeoutMs;
    return [...this.#open]
      .filter(([, { lastSeenAt }]) => lastSeenAt < deadline)
      .map(([sessionId]) => sessionId);
  }

  all(): string[] {
    return [...this.#open.keys()];
  }

  #tell(owner: string, id: string, change: "opened" | "closed"): void {
    this.#context.recorder.hub.publish(owner, "runs", { kind: "session", id, change });
  }

  /** Takes a session out of the open ones; what belongs to it is the caller's business. */
  forget(sessionId: string): void {
    const open = this.#open.get(sessionId);
    this.#open.delete(sessionId);
    if (open) this.#tell(open.owner, sessionId, "closed");
  }
}

/** What clients of a closed session are told. */
export function closedMessage(
  session: Pick<Session, "sessionId" | "closedAt" | "closeReason">,
): string {
  const when = session.closedAt === null ? "" : ` at ${new Date(session.closedAt).toISOString()}`;
  return `session ${session.sessionId} was closed${when}: ${session.closeReason ?? "it ended"}; create a new client and continue from a checkpoint`;
}
