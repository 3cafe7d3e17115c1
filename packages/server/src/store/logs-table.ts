import type { Row, SqlDatabase } from "./sql.js";

/** The owner of runs that every caller sees. */
export const everyone = "*";

/** Where a run is known from. */
export type LogSource = "server" | "log" | "folder";

/** A run as the studio shows it: a model, or what a logger reports about one or several. */
export interface LogRecord {
  readonly logId: string;
  readonly owner: string;
  readonly source: LogSource;
  /** What is done: supervised, rl, preference, unknown. */
  readonly kind: string;
  readonly name: string | null;
  readonly group: string | null;
  readonly tags: readonly string[];
  /** JSON text. */
  readonly config: string | null;
  readonly folder: string | null;
  /** What a logger said at the end; null while it goes on. */
  readonly status: string | null;
  readonly statusReason: string | null;
  readonly attempt: number;
  /** Optimizer steps, or one more than the last step that was logged. */
  readonly steps: number;
  readonly dropped: number;
  readonly isPinned: boolean;
  readonly archivedAt: number | null;
  readonly pausedAt: number | null;
  /** JSON text. */
  readonly controls: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What a new run begins with. */
export type LogDraft = Pick<LogRecord, "logId" | "owner" | "source" | "createdAt">;

/** What can be changed. */
export type LogChange = Partial<Omit<LogRecord, "logId" | "owner" | "source" | "createdAt">>;

/** Something that happened at an x. */
export interface Mark {
  readonly x: number;
  readonly at: number;
  readonly kind: string;
  readonly text: string;
  readonly subject: string | null;
}

/** The place of a run in the order of lists: pinned ones first, then those that were changed last. */
export type LogKey = Pick<LogRecord, "isPinned" | "updatedAt" | "logId">;

/** Behind every key comes everything: no run is pinned twice. */
const lastKey = { isPinned: 2, updatedAt: 0, logId: "" } as const;

const columnNames: Readonly<Record<keyof LogChange, string>> = {
  kind: "kind",
  name: "name",
  group: "group_name",
  tags: "tags",
  config: "config",
  folder: "folder",
  status: "status",
  statusReason: "status_reason",
  attempt: "attempt",
  steps: "steps",
  dropped: "dropped",
  isPinned: "is_pinned",
  archivedAt: "archived_at",
  pausedAt: "paused_at",
  controls: "controls",
  updatedAt: "updated_at",
};

/** Runs, and everything reported about them but numbers. */
export class LogsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  insert({ logId, owner, source, createdAt }: LogDraft): void {
    this.#database
      .sql(
        "INSERT INTO logs (log_id, owner, source, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
      )
      .run(logId, owner, source, createdAt, createdAt);
  }

  get(logId: string): LogRecord | undefined {
    const row = this.#database.sql("SELECT * FROM logs WHERE log_id = ?").first(logId);
    return row && readLog(row);
  }

  /** Runs of an owner and of everyone behind a key, but no models that a logger watches: these are part of its run. */
  page(owner: string, after: LogKey | null, limit: number, withArchived: boolean): LogRecord[] {
    const { isPinned, updatedAt, logId } = after ?? lastKey;
    const statement = this.#database.sql(
      `SELECT * FROM logs WHERE owner = ? AND (is_pinned, updated_at, log_id) < (?, ?, ?)
         AND (? OR archived_at IS NULL)
         AND NOT EXISTS (SELECT 1 FROM log_models WHERE model_id = logs.log_id)
       ORDER BY is_pinned DESC, updated_at DESC, log_id DESC LIMIT ?`,
    );
    return [owner, everyone]
      .flatMap((one) =>
        statement.all(one, Number(isPinned), updatedAt, logId, Number(withArchived), limit),
      )
      .map(readLog)
      .toSorted(
        (a, b) =>
          Number(b.isPinned) - Number(a.isPinned) ||
          b.updatedAt - a.updatedAt ||
          (a.logId < b.logId ? 1 : -1),
      )
      .slice(0, limit);
  }

  /** How many runs of loggers an owner has. */
  count(owner: string): number {
    const row = this.#database
      .sql("SELECT count(*) AS total FROM logs WHERE owner = ? AND source = 'log'")
      .first(owner);
    return Number(row?.["total"]);
  }

  change(logId: string, change: LogChange): void {
    const entries = Object.entries(change) as [keyof LogChange, unknown][];
    const set = entries.filter(([, value]) => value !== undefined);
    if (set.length === 0) return;
    const assignments = set.map(([name]) => `${columnNames[name]} = ?`).join(", ");
    this.#database
      .sql(`UPDATE logs SET ${assignments} WHERE log_id = ?`)
      .run(...set.map(([, value]) => toColumn(value)), logId);
  }

  /** Models that nothing new is begun of. */
  isPaused(logId: string): boolean {
    return (
      this.#database
        .sql("SELECT 1 FROM logs WHERE log_id = ? AND paused_at IS NOT NULL")
        .first(logId) !== undefined
    );
  }

  addModel(logId: string, modelId: string): void {
    this.#database
      .sql("INSERT OR IGNORE INTO log_models (log_id, model_id) VALUES (?, ?)")
      .run(logId, modelId);
  }

  /** Models that a logger has said belong to its run. */
  models(logId: string): string[] {
    return this.#database
      .sql("SELECT model_id FROM log_models WHERE log_id = ? ORDER BY model_id")
      .all(logId)
      .map((row) => row["model_id"] as string);
  }

  /** The run that watches a model. */
  logOfModel(modelId: string): string | undefined {
    const row = this.#database
      .sql("SELECT log_id FROM log_models WHERE model_id = ?")
      .first(modelId);
    return row?.["log_id"] as string | undefined;
  }

  writer(logId: string, writer: string): { lastN: number; attempt: number } | undefined {
    const row = this.#database
      .sql("SELECT last_n, attempt FROM log_writers WHERE log_id = ? AND writer = ?")
      .first(logId, writer);
    return row && { lastN: Number(row["last_n"]), attempt: Number(row["attempt"]) };
  }

  writers(logId: string): string[] {
    return this.#database
      .sql("SELECT writer FROM log_writers WHERE log_id = ?")
      .all(logId)
      .map((row) => row["writer"] as string);
  }

  setWriter(logId: string, writer: string, lastN: number, attempt: number): void {
    this.#database
      .sql(
        `INSERT INTO log_writers (log_id, writer, last_n, attempt) VALUES (?, ?, ?, ?)
         ON CONFLICT (log_id, writer) DO UPDATE SET
           last_n = excluded.last_n, attempt = excluded.attempt`,
      )
      .run(logId, writer, lastN, attempt);
  }

  addMark(logId: string, { x, at, kind, text, subject }: Mark): void {
    this.#database
      .sql("INSERT INTO marks (log_id, x, at, kind, text, subject) VALUES (?, ?, ?, ?, ?, ?)")
      .run(logId, x, at, kind, text, subject);
  }

  /** The newest marks of a run, in order. */
  marks(logId: string, limit: number): Mark[] {
    return this.#database
      .sql("SELECT * FROM marks WHERE log_id = ? ORDER BY mark_id DESC LIMIT ?")
      .all(logId, limit)
      .map(readMark)
      .toReversed();
  }

  /** The last mark of some kind of a run. */
  lastMark(logId: string, kind: string): Mark | undefined {
    const row = this.#database
      .sql("SELECT * FROM marks WHERE log_id = ? AND kind = ? ORDER BY mark_id DESC LIMIT 1")
      .first(logId, kind);
    return row && readMark(row);
  }

  /** The mark that a checkpoint was saved, by its path. */
  savedMark(subject: string): Mark | undefined {
    const row = this.#database
      .sql(
        "SELECT * FROM marks WHERE subject = ? AND kind = 'checkpoint' ORDER BY mark_id DESC LIMIT 1",
      )
      .first(subject);
    return row && readMark(row);
  }

  setSpans(logId: string, step: number, spans: string): void {
    this.#database
      .sql(
        `INSERT INTO log_spans (log_id, step, spans) VALUES (?, ?, ?)
         ON CONFLICT (log_id, step) DO UPDATE SET spans = excluded.spans`,
      )
      .run(logId, step, spans);
  }

  spans(logId: string, from: number, to: number, limit: number): { step: number; spans: string }[] {
    return this.#database
      .sql(
        `SELECT step, spans FROM log_spans WHERE log_id = ? AND step >= ? AND step <= ?
         ORDER BY step DESC LIMIT ?`,
      )
      .all(logId, from, to, limit)
      .map((row) => ({ step: Number(row["step"]), spans: row["spans"] as string }))
      .toReversed();
  }

  /** Runs with points that are not pinned and were not changed since a time, the longest unchanged first. */
  oldest(owner: string, before: number, limit: number): string[] {
    return this.#database
      .sql(
        `SELECT log_id FROM logs WHERE owner = ? AND is_pinned = 0 AND updated_at < ?
           AND EXISTS (SELECT 1 FROM series WHERE series.log_id = logs.log_id)
         ORDER BY updated_at LIMIT ?`,
      )
      .all(owner, before, limit)
      .map((row) => row["log_id"] as string);
  }

  /** Owners with more logged runs than this. */
  crowded(most: number): string[] {
    return this.#database
      .sql("SELECT owner FROM logs WHERE source = 'log' GROUP BY owner HAVING count(*) > ?")
      .all(most)
      .map((row) => row["owner"] as string);
  }

  /** Logged runs of an owner that are not pinned, the longest untouched first. */
  longestUntouched(owner: string, limit: number): string[] {
    return this.#database
      .sql(
        `SELECT log_id FROM logs WHERE owner = ? AND is_pinned = 0 AND source = 'log'
         ORDER BY updated_at LIMIT ?`,
      )
      .all(owner, limit)
      .map((row) => row["log_id"] as string);
  }

  /** Runs that were imported from folders. */
  ofFolders(): string[] {
    return this.#database
      .sql("SELECT log_id FROM logs WHERE source = 'folder'")
      .all()
      .map((row) => row["log_id"] as string);
  }

  /** Runs of models that are gone, and of loggers that ended long ago. */
  outdated(before: number): string[] {
    return this.#database
      .sql(
        `SELECT log_id FROM logs WHERE is_pinned = 0 AND updated_at < ? AND source <> 'folder' AND (source = 'log' OR NOT EXISTS (
           SELECT 1 FROM models WHERE model_id = log_id)) LIMIT 100`,
      )
      .all(before)
      .map((row) => row["log_id"] as string);
  }

  remove(logId: string): void {
    for (const table of ["log_models", "log_writers", "log_lines", "log_spans", "marks", "logs"]) {
      this.#database.sql(`DELETE FROM ${table} WHERE log_id = ?`).run(logId);
    }
  }

  views(owner: string): { viewId: string; name: string; query: string }[] {
    return this.#database
      .sql("SELECT * FROM views WHERE owner = ? ORDER BY name, view_id")
      .all(owner)
      .map((row) => ({
        viewId: row["view_id"] as string,
        name: row["name"] as string,
        query: row["query"] as string,
      }));
  }

  addView(owner: string, view: { viewId: string; name: string; query: string }): void {
    this.#database
      .sql("INSERT INTO views (view_id, owner, name, query) VALUES (?, ?, ?, ?)")
      .run(view.viewId, owner, view.name, view.query);
  }

  removeView(owner: string, viewId: string): boolean {
    return (
      this.#database.sql("DELETE FROM views WHERE view_id = ? AND owner = ?").run(viewId, owner) > 0
    );
  }
}

function toColumn(value: unknown): string | number | null {
  if (Array.isArray(value)) return JSON.stringify(value);
  if (typeof value === "boolean") return value ? 1 : 0;
  return value as string | number | null;
}

function readLog(row: Row): LogRecord {
  return {
    logId: row["log_id"] as string,
    owner: row["owner"] as string,
    source: row["source"] as LogSource,
    kind: row["kind"] as string,
    name: row["name"] as string | null,
    group: row["group_name"] as string | null,
    tags: JSON.parse(row["tags"] as string) as string[],
    config: row["config"] as string | null,
    folder: row["folder"] as string | null,
    status: row["status"] as string | null,
    statusReason: row["status_reason"] as string | null,
    attempt: Number(row["attempt"]),
    steps: Number(row["steps"]),
    dropped: Number(row["dropped"]),
    isPinned: row["is_pinned"] === 1,
    archivedAt: row["archived_at"] as number | null,
    pausedAt: row["paused_at"] as number | null,
    controls: row["controls"] as string | null,
    createdAt: Number(row["created_at"]),
    updatedAt: Number(row["updated_at"]),
  };
}

function readMark(row: Row): Mark {
  return {
    x: Number(row["x"]),
    at: Number(row["at"]),
    kind: row["kind"] as string,
    text: row["text"] as string,
    subject: row["subject"] as string | null,
  };
}
