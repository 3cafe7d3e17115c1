import type { WireTypeName } from "tinker-ts/wire";
import type { FailureCategory } from "../errors/failure.js";
import { contentOf, isLargeSize, type Content } from "./content.js";
import type { Row, SqlDatabase, SqlValue } from "./sql.js";

/** What a request asks for. */
export type RequestKind =
  | "create_model"
  | "forward_backward"
  | "forward"
  | "optim_step"
  | "save_weights"
  | "save_weights_for_sampler"
  | "load_weights"
  | "unload_model"
  | "sample"
  /** A mistake under a number of its own; its payload says what is wrong. */
  | "refused";

/**
 * - `pending`: accepted; queued or running
 * - `done`, `failed`: finished, the answer is kept
 * - `gone`: finished, the answer has been dropped
 */
export type RequestState = "pending" | "done" | "failed" | "gone";

/** An accepted request without its payload and result. */
export interface RequestHead {
  readonly requestId: string;
  readonly owner: string;
  readonly sessionId: string | null;
  readonly modelId: string | null;
  readonly samplerId: string | null;
  readonly seq: number | null;
  readonly kind: RequestKind;
  /** Digest of what the client asked for; a retry has the same. */
  readonly identity: Uint8Array;
  readonly state: RequestState;
  readonly payloadBytes: number;
  /** Position among the operations that changed the model, while its payload is in the journal. */
  readonly applied: number | null;
  readonly acceptedAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

/** How a request ended, with its result at hand. */
export type Settled =
  | {
      readonly state: "done";
      readonly resultType: WireTypeName;
      readonly bytes: Uint8Array;
      /** How long the engine took, while that is remembered. */
      readonly engineMs?: number;
    }
  | { readonly state: "failed"; readonly error: string; readonly category: FailureCategory };

/** How a request ended, as it is stored. */
export type Outcome =
  | {
      readonly state: "done";
      readonly resultType: string;
      readonly result: Content;
      /** SHA-256 of the result; null where it was stored before this was kept. */
      readonly digest: Uint8Array | null;
    }
  | { readonly state: "failed"; readonly error: string; readonly category: FailureCategory };

/** A payload as it is stored. */
export interface PayloadRow extends Pick<RequestHead, "kind" | "identity"> {
  readonly content: Content;
  /** SHA-256 of the payload, where the identity is not made from all of it. */
  readonly digest: Uint8Array | null;
}

/** What is recorded together with the outcome. */
export interface FinishedFacts {
  readonly startedAt: number | null;
  readonly finishedAt: number;
  /** Set for operations that changed the model: their payload stays in the journal. */
  readonly applied: number | null;
  readonly tokens: number;
}

/** How a request ended, with what is recorded of it. */
export interface Ending {
  readonly outcome: Outcome;
  readonly facts: FinishedFacts;
}

/** A request on a session's timeline. */
export interface TimelineRow extends RequestHead {
  readonly rowId: number;
  readonly tokens: number;
}

/** The columns of a head. */
export const headColumns = `request_id, owner, session_id, model_id, sampler_id, seq, kind, identity, state,
  payload_bytes, applied, accepted_at, started_at, finished_at`;

const endColumns = [
  "state",
  "result_type",
  "result",
  "result_blob",
  "result_bytes",
  "result_digest",
  "error",
  "category",
  "applied",
  "tokens",
  "started_at",
  "finished_at",
];

const finishSql = `UPDATE requests SET ${endColumns.join(" = ?, ")} = ? WHERE request_id = ?`;

const finishAndDropSql = finishSql.replace(
  "SET",
  "SET payload = NULL, payload_blob = NULL, payload_bytes = 0,",
);

const insertColumns = [
  "request_id",
  "owner",
  "session_id",
  "model_id",
  "sampler_id",
  "seq",
  "kind",
  "identity",
  "payload",
  "payload_blob",
  "payload_bytes",
  "payload_digest",
  "accepted_at",
];

const insertSql = insertOf([...insertColumns, "state"]);
const insertEndedSql = insertOf([...insertColumns, ...endColumns]);

function insertOf(columns: readonly string[]): string {
  const places = columns.map(() => "?").join(", ");
  return `INSERT INTO requests (${columns.join(", ")}) VALUES (${places})
    ON CONFLICT (request_id) DO NOTHING`;
}

const noContent: Content = { inline: null, blob: null, sizeBytes: 0 };

/** Accepted requests with their payloads and results. */
export class RequestsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** Adds a request, which may have ended already; tells whether it is a new one. */
  insert(
    head: RequestHead,
    payload: Content,
    digest: Uint8Array | null = null,
    ending: Ending | null = null,
  ): boolean {
    const kept = ending?.facts.applied === null ? noContent : payload;
    const changed = this.#database
      .sql(ending ? insertEndedSql : insertSql)
      .run(
        head.requestId,
        head.owner,
        head.sessionId,
        head.modelId,
        head.samplerId,
        head.seq,
        head.kind,
        head.identity,
        kept.inline,
        kept.blob,
        kept.sizeBytes,
        digest,
        head.acceptedAt,
        ...(ending ? endValues(ending) : ["pending"]),
      );
    return changed > 0;
  }

  head(requestId: string): RequestHead | undefined {
    const row = this.#database
      .sql(`SELECT ${headColumns} FROM requests WHERE request_id = ?`)
      .first(requestId);
    return row && readHead(row);
  }

  /** The payload of a request, with what is needed to tell that it is the one that was accepted. */
  payload(requestId: string): PayloadRow | undefined {
    const row = this.#database
      .sql(
        `SELECT kind, identity, payload, payload_blob, payload_bytes, payload_digest
         FROM requests WHERE request_id = ?`,
      )
      .first(requestId);
    return (
      row && {
        kind: row["kind"] as RequestKind,
        identity: row["identity"] as Uint8Array,
        content: contentOf(row, "payload"),
        digest: row["payload_digest"] as Uint8Array | null,
      }
    );
  }

  outcome(requestId: string): Outcome | undefined {
    const row = this.#database
      .sql(
        `SELECT state, result_type, result, result_blob, result_bytes, result_digest, error, category
         FROM requests WHERE request_id = ? AND state IN ('done', 'failed')`,
      )
      .first(requestId);
    return row && readOutcome(row);
  }

  /** Everything accepted and not finished, in the order of acceptance. */
  pending(): RequestHead[] {
    return this.#database
      .sql(
        `SELECT ${headColumns} FROM requests WHERE state = 'pending' ORDER BY accepted_at, rowid`,
      )
      .all()
      .map(readHead);
  }

  /** Ends a request; returns the blob of a payload that is not needed any more. */
  finish(
    { requestId, payloadBytes }: Pick<RequestHead, "requestId" | "payloadBytes">,
    outcome: Outcome,
    facts: FinishedFacts,
  ): string | null {
    const isKept = facts.applied !== null;
    // Most payloads are in their row, so that there is nothing to look up.
    const unused = isKept || !isLargeSize(payloadBytes) ? null : this.#payloadBlob(requestId);
    this.#database
      .sql(isKept ? finishSql : finishAndDropSql)
      .run(...endValues({ outcome, facts }), requestId);
    return unused;
  }

  /** When the requests of a session came, ran and ended, in pages: pass the last row's `rowId` to go on. */
  timeline(sessionId: string, afterRowId: number, limit: number): TimelineRow[] {
    return this.#database
      .sql(
        `SELECT rowid AS row_id, tokens, ${headColumns} FROM requests
         WHERE session_id = ? AND rowid > ? ORDER BY rowid LIMIT ?`,
      )
      .all(sessionId, afterRowId, limit)
      .map((row) => ({
        ...readHead(row),
        rowId: Number(row["row_id"]),
        tokens: Number(row["tokens"]),
      }));
  }

  markFetched(requestId: string, at: number): void {
    this.#database
      .sql("UPDATE requests SET fetched_at = ? WHERE request_id = ? AND fetched_at IS NULL")
      .run(at, requestId);
  }

  #payloadBlob(requestId: string): string | null {
    const row = this.#database
      .sql("SELECT payload_blob FROM requests WHERE request_id = ?")
      .first(requestId);
    return (row?.["payload_blob"] ?? null) as string | null;
  }
}

/** The values of `endColumns`. */
function endValues({ outcome, facts }: Ending): SqlValue[] {
  const isDone = outcome.state === "done";
  return [
    outcome.state,
    isDone ? outcome.resultType : null,
    isDone ? outcome.result.inline : null,
    isDone ? outcome.result.blob : null,
    isDone ? outcome.result.sizeBytes : 0,
    isDone ? outcome.digest : null,
    isDone ? null : outcome.error,
    isDone ? null : outcome.category,
    facts.applied,
    facts.tokens,
    facts.startedAt,
    facts.finishedAt,
  ];
}

/** Reads the columns of a head. */
export function readHead(row: Row): RequestHead {
  return {
    requestId: row["request_id"] as string,
    owner: row["owner"] as string,
    sessionId: row["session_id"] as string | null,
    modelId: row["model_id"] as string | null,
    samplerId: row["sampler_id"] as string | null,
    seq: row["seq"] as number | null,
    kind: row["kind"] as RequestKind,
    identity: row["identity"] as Uint8Array,
    state: row["state"] as RequestState,
    payloadBytes: Number(row["payload_bytes"]),
    applied: row["applied"] as number | null,
    acceptedAt: Number(row["accepted_at"]),
    startedAt: row["started_at"] as number | null,
    finishedAt: row["finished_at"] as number | null,
  };
}

function readOutcome(row: Row): Outcome {
  if (row["state"] === "done") {
    return {
      state: "done",
      resultType: row["result_type"] as string,
      result: contentOf(row, "result"),
      digest: row["result_digest"] as Uint8Array | null,
    };
  }
  return {
    state: "failed",
    error: row["error"] as string,
    category: row["category"] as FailureCategory,
  };
}
