import { parseJson, stringifyJson } from "tinker-ts/wire";
import type { Row, SqlDatabase } from "./sql.js";

/** The end of a program, in its own words. */
export interface SessionFinish {
  readonly at: number;
  readonly reason: string;
  readonly detail: string | null;
}

/** A client's stay on the server. */
export interface Session {
  readonly sessionId: string;
  readonly owner: string;
  readonly tags: readonly string[];
  readonly userMetadata: Readonly<Record<string, unknown>>;
  readonly sdkVersion: string;
  readonly projectId: string | null;
  /** A name for people to read. */
  readonly displayName: string | null;
  readonly createdAt: number;
  /** How its program said that it ended. */
  readonly finish: SessionFinish | null;
  readonly closedAt: number | null;
  readonly closeReason: string | null;
}

/** Sessions, open and closed. */
export class SessionsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  insert(session: Session, idempotencyKey: string | null): void {
    this.#database
      .sql(
        `INSERT INTO sessions (session_id, owner, idempotency_key, tags, user_metadata, sdk_version,
           project_id, display_name, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        session.sessionId,
        session.owner,
        idempotencyKey,
        JSON.stringify(session.tags),
        stringifyJson(session.userMetadata),
        session.sdkVersion,
        session.projectId,
        session.displayName,
        session.createdAt,
      );
  }

  get(sessionId: string): Session | undefined {
    return read(this.#database.sql("SELECT * FROM sessions WHERE session_id = ?").first(sessionId));
  }

  /** The session that an earlier attempt of the same call has made. */
  byKey(owner: string, idempotencyKey: string): Session | undefined {
    return read(
      this.#database
        .sql("SELECT * FROM sessions WHERE owner = ? AND idempotency_key = ?")
        .first(owner, idempotencyKey),
    );
  }

  /** Sessions that are not closed, those among them that are finished too. */
  open(): Session[] {
    return this.#database
      .sql("SELECT * FROM sessions WHERE closed_at IS NULL")
      .all()
      .map((row) => read(row));
  }

  /** Newest first. */
  list(owner: string, limit: number, offset: number): Session[] {
    return this.#database
      .sql(
        `SELECT * FROM sessions WHERE owner = ? ORDER BY created_at DESC, session_id
         LIMIT ? OFFSET ?`,
      )
      .all(owner, limit, offset)
      .map((row) => read(row));
  }

  /** Records how a session was finished, once. */
  finish(sessionId: string, { at, reason, detail }: SessionFinish): void {
    this.#database
      .sql(
        `UPDATE sessions SET finished_at = ?, finish_reason = ?, finish_detail = ?
         WHERE session_id = ? AND finished_at IS NULL AND closed_at IS NULL`,
      )
      .run(at, reason, detail, sessionId);
  }

  close(sessionId: string, reason: string, at: number): void {
    this.#database
      .sql(
        `UPDATE sessions SET closed_at = ?, close_reason = ?
         WHERE session_id = ? AND closed_at IS NULL`,
      )
      .run(at, reason, sessionId);
  }

  assignProject(sessionId: string, projectId: string): void {
    this.#database
      .sql("UPDATE sessions SET project_id = ? WHERE session_id = ?")
      .run(projectId, sessionId);
  }

  /** Forgets sessions that ended long ago and have left nothing behind. */
  prune(closedBefore: number): void {
    this.#database
      .sql(
        `DELETE FROM sessions WHERE closed_at < ?
           AND NOT EXISTS (SELECT 1 FROM models WHERE models.session_id = sessions.session_id)
           AND NOT EXISTS (SELECT 1 FROM usage WHERE usage.session_id = sessions.session_id)`,
      )
      .run(closedBefore);
  }
}

function read(row: Row): Session;
function read(row: Row | undefined): Session | undefined;
function read(row: Row | undefined): Session | undefined {
  if (!row) return undefined;
  return {
    sessionId: row["session_id"] as string,
    owner: row["owner"] as string,
    tags: JSON.parse(row["tags"] as string) as string[],
    userMetadata: parseJson(row["user_metadata"] as string) as Record<string, unknown>,
    sdkVersion: row["sdk_version"] as string,
    projectId: row["project_id"] as string | null,
    displayName: row["display_name"] as string | null,
    finish: readFinish(row),
    createdAt: Number(row["created_at"]),
    closedAt: row["closed_at"] as number | null,
    closeReason: row["close_reason"] as string | null,
  };
}

function readFinish(row: Row): SessionFinish | null {
  const at = row["finished_at"];
  if (at === null) return null;
  const detail = row["finish_detail"] as string | null;
  return { at: Number(at), reason: row["finish_reason"] as string, detail };
}
