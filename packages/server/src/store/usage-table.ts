import type { Row, SqlDatabase } from "./sql.js";

/** What is counted: tokens, and for `checkpoint` the number of saves. */
export type UsageKind =
  | "training"
  | "sampling_prefill"
  | "sampling_prefill_cached"
  | "sampling_sample"
  | "checkpoint";

/** Something used, to be added to the bucket of its hour. */
export interface Usage {
  readonly kind: UsageKind;
  readonly amount: number;
}

/** Whom and what usage is counted for. */
export interface UsageAccount {
  readonly owner: string;
  readonly sessionId: string | null;
  readonly baseModel: string;
  /** The owner of the weights; null for those of the base model. */
  readonly modelId?: string | null;
}

/** The sum of one hour. */
export interface UsageSum extends Usage {
  readonly bucketStart: number;
  readonly sessionId: string | null;
  readonly baseModel: string;
}

/** The sum of one hour and one model. */
export interface ModelUsage extends UsageSum {
  readonly modelId: string | null;
}

/** The length of a bucket. */
export const bucketMs = 3_600_000;

/** Usage by hour; written in the transaction of the result it belongs to, so a crash counts nothing twice. */
export class UsageTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  add(account: UsageAccount, usages: readonly Usage[], at: number): void {
    const bucket = Math.floor(at / bucketMs) * bucketMs;
    const { owner, sessionId, baseModel, modelId } = account;
    const used = usages.filter(({ amount }) => amount !== 0);
    if (used.length === 0) return;
    const rows = used.map(() => "(?1, ?2, ?3, ?4, ?5, ?, ?)").join(", ");
    this.#database
      .sql(
        `INSERT INTO usage (bucket, owner, session_id, base_model, model_id, kind, amount)
         VALUES ${rows}
         ON CONFLICT DO UPDATE SET amount = amount + excluded.amount`,
      )
      .run(
        bucket,
        owner,
        sessionId ?? "",
        baseModel,
        modelId ?? "",
        ...used.flatMap(({ kind, amount }) => [kind, amount]),
      );
  }

  /** By hour, then the largest first; all models of a session together. */
  list(owner: string, from: number, to: number): UsageSum[] {
    return this.#database
      .sql(
        `SELECT bucket, session_id, base_model, kind, sum(amount) AS amount FROM usage
         WHERE owner = ? AND bucket >= ? AND bucket < ?
         GROUP BY bucket, session_id, base_model, kind
         ORDER BY bucket, amount DESC, session_id, kind`,
      )
      .all(owner, from, to)
      .map(toSum);
  }

  /** By hour and model. */
  listByModel(owner: string, from: number, to: number): ModelUsage[] {
    return this.#database
      .sql(
        `SELECT * FROM usage WHERE owner = ? AND bucket >= ? AND bucket < ?
         ORDER BY bucket, session_id, model_id, kind`,
      )
      .all(owner, from, to)
      .map((row) => ({ ...toSum(row), modelId: (row["model_id"] as string) || null }));
  }

  prune(before: number): void {
    this.#database.sql("DELETE FROM usage WHERE bucket < ?").run(before);
  }
}

function toSum(row: Row): UsageSum {
  return {
    bucketStart: Number(row["bucket"]),
    sessionId: (row["session_id"] as string) || null,
    baseModel: row["base_model"] as string,
    kind: row["kind"] as UsageKind,
    amount: Number(row["amount"]),
  };
}
