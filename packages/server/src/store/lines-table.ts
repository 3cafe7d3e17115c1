import type { Row, SqlDatabase } from "./sql.js";

/** A line of text. */
export interface TextLine {
  readonly n: number;
  readonly at: number | null;
  readonly level: string;
  readonly text: string;
}

/** Which lines of text: those after a number, else the last ones before one. */
export interface LineRange {
  readonly after: number | null;
  readonly before: number | null;
}

/** Lines that are removed at a time. */
const linesPerTrim = 1000;

/** Lines of text of runs. Their characters are counted for each run, because they are bounded for each owner. */
export class LinesTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  add(logId: string, line: Omit<TextLine, "n">): number {
    const row = this.#database
      .sql(
        `INSERT INTO log_lines (log_id, n, at, level, text)
         VALUES (?1, (SELECT coalesce(max(n) + 1, 0) FROM log_lines WHERE log_id = ?1), ?2, ?3, ?4)
         RETURNING n`,
      )
      .first(logId, line.at, line.level, line.text);
    return Number(row?.["n"]);
  }

  /** Some lines behind a number in order, or before one from the last to the first. */
  page(logId: string, { after, before }: LineRange, limit: number): TextLine[] {
    const direction = after === null ? "DESC" : "ASC";
    return this.#database
      .sql(
        `SELECT n, at, level, text FROM log_lines WHERE log_id = ? AND n > ? AND n < ?
         ORDER BY n ${direction} LIMIT ?`,
      )
      .all(logId, after ?? -1, before ?? Number.MAX_SAFE_INTEGER, limit)
      .map(readLine);
  }

  /** Characters of the text lines of an owner. */
  bytes(owner: string): number {
    const row = this.#database
      .sql(
        "SELECT coalesce(sum(line_bytes), 0) AS total FROM logs WHERE owner = ? AND line_bytes > 0",
      )
      .first(owner);
    return Number(row?.["total"]);
  }

  addBytes(logId: string, bytes: number): void {
    this.#database
      .sql("UPDATE logs SET line_bytes = line_bytes + ? WHERE log_id = ?")
      .run(bytes, logId);
  }

  /** Removes the oldest lines of the longest untouched run of an owner, some at a time; returns their characters. */
  trim(owner: string, excess: number): number {
    const run = this.#database
      .sql(
        "SELECT log_id FROM logs WHERE owner = ? AND line_bytes > 0 ORDER BY is_pinned, updated_at LIMIT 1",
      )
      .first(owner);
    if (!run) return 0;
    const logId = run["log_id"] as string;
    const oldest = this.page(logId, { after: -1, before: null }, linesPerTrim);
    let [bytes, count] = [0, 0];
    while (bytes < excess && count < oldest.length) bytes += oldest[count++]!.text.length;
    if (count === oldest.length && count < linesPerTrim) this.#noLines(logId);
    else this.addBytes(logId, -bytes);
    const next = oldest[count]?.n ?? Number.MAX_SAFE_INTEGER;
    const before = count === linesPerTrim ? oldest.at(-1)!.n + 1 : next;
    this.#database.sql("DELETE FROM log_lines WHERE log_id = ? AND n < ?").run(logId, before);
    return bytes;
  }

  #noLines(logId: string): void {
    this.#database.sql("UPDATE logs SET line_bytes = 0 WHERE log_id = ?").run(logId);
  }

  next(logId: string): number {
    const row = this.#database
      .sql("SELECT coalesce(max(n) + 1, 0) AS n FROM log_lines WHERE log_id = ?")
      .first(logId);
    return Number(row?.["n"] ?? 0);
  }
}

function readLine(row: Row): TextLine {
  return {
    n: Number(row["n"]),
    at: row["at"] as number | null,
    level: row["level"] as string,
    text: row["text"] as string,
  };
}
