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
export interface RequestRow {
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
export interface PayloadRow extends Pick<RequestRow, "kind" | "identity"> {
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

/** A request on a session's timeline. */
export interface TimelineRow extends RequestRow {
  readonly rowId: number;
  readonly tokens: number;
}

/** A sample of a sampling session that has ended; its answer may have been dropped. */
export interface SettledSample {
  readonly requestId: string;
  readonly state: Exclude<RequestState, "pending">;
  readonly sizeBytes: number;
  /** Grows from ending to ending. */
  readonly settledNo: number;
}

/** The columns of a request. */
export const requestColumns = `request_id, owner, session_id, model_id, sampler_id, seq, kind, identity, state,
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
  "settled_no",
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

const insertSql = `INSERT INTO requests (${insertColumns.join(", ")}, state)
  VALUES (${insertColumns.map(() => "?").join(", ")}, 'pending') ON CONFLICT (request_id) DO NOTHING`;

/** Accepted requests with their payloads and results. */
export class RequestsTable {
  readonly #database: SqlDatabase;
  #lastSettledNo: number | undefined;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** Adds an accepted request; false where its id is taken. */
  insert(head: RequestRow, payload: Content, digest: Uint8Array | null = null): boolean {
    const changed = this.#database
      .sql(insertSql)
      .run(
        head.requestId,
        head.owner,
        head.sessionId,
        head.modelId,
        head.samplerId,
        head.seq,
        head.kind,
        head.identity,
        payload.inline,
        payload.blob,
        payload.sizeBytes,
        digest,
        head.acceptedAt,
      );
    return changed > 0;
  }

  get(requestId: string): RequestRow | undefined {
    const row = this.#database
      .sql(`SELECT ${requestColumns} FROM requests WHERE request_id = ?`)
      .first(requestId);
    return row && readRequest(row);
  }

  /** The payload of a request, with what identifies it as the accepted one. */
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
  pending(): RequestRow[] {
    return this.#database
      .sql(
        `SELECT ${requestColumns} FROM requests WHERE state = 'pending' ORDER BY accepted_at, rowid`,
      )
      .all()
      .map(readRequest);
  }

  /** Ends a request; returns the blob of a payload that is not needed any more. */
  finish(
    { requestId, payloadBytes }: Pick<RequestRow, "requestId" | "payloadBytes">,
    outcome: Outcome,
    facts: FinishedFacts,
  ): string | null {
    const isKept = facts.applied !== null;
    // Most payloads are in their row, so that there is nothing to look up.
    const unused = isKept || !isLargeSize(payloadBytes) ? null : this.#payloadBlob(requestId);
    const values = [...endValues(outcome, facts), this.#nextSettledNo(facts.finishedAt)];
    this.#database.sql(isKept ? finishSql : finishAndDropSql).run(...values, requestId);
    return unused;
  }

  /** When the requests of a session came, ran and ended, in pages: pass the last row's `rowId` to go on. */
  timeline(sessionId: string, afterRowId: number, limit: number): TimelineRow[] {
    return this.#database
      .sql(
        `SELECT rowid AS row_id, tokens, ${requestColumns} FROM requests
         WHERE session_id = ? AND rowid > ? ORDER BY rowid LIMIT ?`,
      )
      .all(sessionId, afterRowId, limit)
      .map((row) => ({
        ...readRequest(row),
        rowId: Number(row["row_id"]),
        tokens: Number(row["tokens"]),
      }));
  }

  markFetched(requestId: string, at: number): void {
    this.#database
      .sql("UPDATE requests SET fetched_at = ? WHERE request_id = ? AND fetched_at IS NULL")
      .run(at, requestId);
  }

  /** Samples of a sampling session that have ended behind another, in order. */
  settledSamples(samplerId: string, afterNo: number, limit: number): SettledSample[] {
    return this.#database
      .sql(
        `SELECT request_id, state, result_bytes, settled_no FROM requests
         WHERE sampler_id = ? AND settled_no > ? ORDER BY settled_no LIMIT ?`,
      )
      .all(samplerId, afterNo, limit)
      .map((row) => ({
        requestId: row["request_id"] as string,
        state: row["state"] as SettledSample["state"],
        sizeBytes: Number(row["result_bytes"]),
        settledNo: Number(row["settled_no"]),
      }));
  }

  #nextSettledNo(finishedAt: number): number {
    this.#lastSettledNo ??= Number(
      this.#database
        .sql("SELECT max(settled_no) AS last FROM requests WHERE sampler_id IS NOT NULL")
        .first()?.["last"] ?? 0,
    );
    // Close to the time, so that numbers grow also when the records of all earlier requests are gone.
    this.#lastSettledNo = Math.max(this.#lastSettledNo + 1, finishedAt * 1000);
    return this.#lastSettledNo;
  }

  #payloadBlob(requestId: string): string | null {
    const row = this.#database
      .sql("SELECT payload_blob FROM requests WHERE request_id = ?")
      .first(requestId);
    return (row?.["payload_blob"] ?? null) as string | null;
  }
}

/** The values of `endColumns` but the last. */
function endValues(outcome: Outcome, facts: FinishedFacts): SqlValue[] {
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

/** Reads the columns of a request. */
export function readRequest(row: Row): RequestRow {
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
