import type { SqlDatabase } from "./sql.js";

/*
 * The tables, as the steps that lead to them: step n brings a database from version n to n + 1.
 * Times are milliseconds since the epoch. Large payloads and results live in blob files beside the
 * database; the *_blob columns then hold the file's name.
 */
const steps: readonly string[] = [
  `
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

  CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    idempotency_key TEXT,
    tags TEXT NOT NULL,
    user_metadata TEXT NOT NULL,
    sdk_version TEXT NOT NULL,
    project_id TEXT,
    created_at INTEGER NOT NULL,
    closed_at INTEGER,
    close_reason TEXT
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX sessions_by_key ON sessions (owner, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
  CREATE INDEX sessions_by_owner ON sessions (owner, created_at);
  CREATE INDEX sessions_open ON sessions (session_id) WHERE closed_at IS NULL;

  CREATE TABLE models (
    model_id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    base_model TEXT NOT NULL,
    lora TEXT NOT NULL,
    user_metadata TEXT,
    state TEXT NOT NULL,
    state_reason TEXT,
    next_seq INTEGER NOT NULL,
    applied INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_request_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX models_by_session ON models (session_id);
  CREATE INDEX models_by_owner ON models (owner, last_request_at);

  CREATE TABLE snapshots (
    model_id TEXT NOT NULL,
    applied INTEGER NOT NULL,
    folder TEXT NOT NULL,
    digest TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (model_id, applied)
  ) WITHOUT ROWID;

  CREATE TABLE samplers (
    sampler_id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    base_model TEXT NOT NULL,
    model_path TEXT,
    created_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX samplers_by_session ON samplers (session_id);

  CREATE TABLE requests (
    request_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    session_id TEXT,
    model_id TEXT,
    sampler_id TEXT,
    seq INTEGER,
    kind TEXT NOT NULL,
    identity BLOB NOT NULL,
    state TEXT NOT NULL,
    payload BLOB,
    payload_blob TEXT,
    payload_bytes INTEGER NOT NULL,
    applied INTEGER,
    result_type TEXT,
    result BLOB,
    result_blob TEXT,
    result_bytes INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    category TEXT,
    tokens INTEGER NOT NULL DEFAULT 0,
    accepted_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    fetched_at INTEGER
  );
  CREATE INDEX requests_pending ON requests (accepted_at) WHERE state = 'pending';
  CREATE INDEX requests_journal ON requests (model_id, applied) WHERE applied IS NOT NULL;
  CREATE INDEX requests_by_session ON requests (session_id);
  CREATE INDEX requests_kept ON requests (finished_at) WHERE state IN ('done', 'failed');
  CREATE INDEX requests_fetched ON requests (fetched_at)
    WHERE fetched_at IS NOT NULL AND state IN ('done', 'failed');
  CREATE INDEX requests_gone ON requests (finished_at) WHERE state = 'gone';

  CREATE TABLE checkpoints (
    folder TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    session_id TEXT NOT NULL,
    base_model TEXT NOT NULL,
    lora TEXT NOT NULL,
    has_optimizer INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    is_public INTEGER NOT NULL DEFAULT 0,
    is_ephemeral INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    expires_at INTEGER,
    deleted_at INTEGER
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX checkpoints_by_path ON checkpoints (run_id, type, name)
    WHERE deleted_at IS NULL;
  CREATE INDEX checkpoints_by_owner ON checkpoints (owner, created_at);
  CREATE INDEX checkpoints_ephemeral ON checkpoints (used_at)
    WHERE is_ephemeral = 1 AND deleted_at IS NULL;
  CREATE INDEX checkpoints_expiring ON checkpoints (expires_at)
    WHERE deleted_at IS NULL AND expires_at IS NOT NULL;

  CREATE TABLE usage (
    bucket INTEGER NOT NULL,
    owner TEXT NOT NULL,
    session_id TEXT NOT NULL,
    base_model TEXT NOT NULL,
    kind TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (bucket, owner, session_id, base_model, kind)
  ) WITHOUT ROWID;

  CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    owner TEXT NOT NULL,
    event TEXT NOT NULL,
    model_id TEXT,
    tinker_path TEXT,
    purpose TEXT
  );
  CREATE INDEX audit_by_owner ON audit (owner, at);
  `,
  // Digests of everything on disk, as JSON where there are several files, and what was found damaged.
  `
  ALTER TABLE snapshots DROP COLUMN digest;
  ALTER TABLE snapshots ADD COLUMN files TEXT;
  ALTER TABLE checkpoints ADD COLUMN files TEXT;
  ALTER TABLE checkpoints ADD COLUMN damage TEXT;
  ALTER TABLE requests ADD COLUMN result_digest BLOB;
  `,
  // What the studio shows. Points wait in rows, one per request, until many become columns at once.
  `
  CREATE TABLE logs (
    log_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'unknown',
    name TEXT,
    group_name TEXT,
    tags TEXT NOT NULL DEFAULT '[]',
    config TEXT,
    folder TEXT,
    status TEXT,
    status_reason TEXT,
    attempt INTEGER NOT NULL DEFAULT 1,
    steps INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    archived_at INTEGER,
    paused_at INTEGER,
    controls TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX logs_by_owner ON logs (owner, updated_at);
  CREATE INDEX logs_paused ON logs (log_id) WHERE paused_at IS NOT NULL;

  CREATE TABLE log_models (
    log_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    PRIMARY KEY (log_id, model_id)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX log_of_model ON log_models (model_id);

  CREATE TABLE log_writers (
    log_id TEXT NOT NULL,
    writer TEXT NOT NULL,
    last_n INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (log_id, writer)
  ) WITHOUT ROWID;

  CREATE TABLE log_lines (
    log_id TEXT NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER,
    level TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (log_id, n)
  ) WITHOUT ROWID;

  CREATE TABLE log_spans (
    log_id TEXT NOT NULL,
    step REAL NOT NULL,
    spans TEXT NOT NULL,
    PRIMARY KEY (log_id, step)
  ) WITHOUT ROWID;

  CREATE TABLE marks (
    mark_id INTEGER PRIMARY KEY,
    log_id TEXT NOT NULL,
    x REAL NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    subject TEXT
  );
  CREATE INDEX marks_by_log ON marks (log_id, mark_id);
  CREATE INDEX marks_by_subject ON marks (subject) WHERE subject IS NOT NULL;

  CREATE TABLE points (
    point_id INTEGER PRIMARY KEY,
    log_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    x REAL NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    numbers TEXT NOT NULL
  );
  CREATE INDEX points_by_log ON points (log_id, point_id);

  CREATE TABLE series (
    series_id INTEGER PRIMARY KEY,
    log_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    key TEXT NOT NULL,
    count INTEGER NOT NULL,
    first_x REAL NOT NULL,
    last_x REAL NOT NULL,
    summary TEXT NOT NULL
  );
  CREATE UNIQUE INDEX series_by_key ON series (log_id, key, attempt);

  CREATE TABLE series_chunks (
    chunk_id INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    count INTEGER NOT NULL,
    first_x REAL NOT NULL,
    last_x REAL NOT NULL,
    least REAL,
    most REAL,
    total REAL NOT NULL,
    finite INTEGER NOT NULL,
    nan INTEGER NOT NULL,
    plus INTEGER NOT NULL,
    minus INTEGER NOT NULL,
    x BLOB NOT NULL,
    value BLOB NOT NULL,
    at BLOB NOT NULL
  );
  CREATE UNIQUE INDEX chunks_by_number ON series_chunks (series_id, number);

  CREATE TABLE exhibits (
    exhibit_id INTEGER PRIMARY KEY,
    log_id TEXT NOT NULL,
    model_id TEXT,
    step REAL NOT NULL,
    kind TEXT NOT NULL,
    split TEXT NOT NULL,
    seen INTEGER,
    at INTEGER NOT NULL,
    heads TEXT NOT NULL,
    content BLOB,
    content_blob TEXT,
    content_bytes INTEGER NOT NULL
  );
  CREATE INDEX exhibits_by_step ON exhibits (log_id, kind, step);

  CREATE TABLE views (
    view_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    query TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX views_by_owner ON views (owner, name);
  `,
  // Of payloads that their identity leaves a part of out.
  `
  ALTER TABLE requests ADD COLUMN payload_digest BLOB;
  `,
  `
  ALTER TABLE models ADD COLUMN precision TEXT;
  `,
  // What a run was computed on, in order.
  `
  ALTER TABLE models ADD COLUMN devices TEXT NOT NULL DEFAULT '';
  `,
  // Usage by model: sessions may have several.
  `
  ALTER TABLE usage RENAME TO usage_by_session;
  CREATE TABLE usage (
    bucket INTEGER NOT NULL,
    owner TEXT NOT NULL,
    session_id TEXT NOT NULL,
    base_model TEXT NOT NULL,
    model_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (bucket, owner, session_id, base_model, model_id, kind)
  ) WITHOUT ROWID;
  INSERT INTO usage SELECT bucket, owner, session_id, base_model, '', kind, amount
    FROM usage_by_session;
  DROP TABLE usage_by_session;
  `,
  // What clients from 0.28 on say about sessions and checkpoints.
  `
  ALTER TABLE sessions ADD COLUMN display_name TEXT;
  ALTER TABLE sessions ADD COLUMN finished_at INTEGER;
  ALTER TABLE sessions ADD COLUMN finish_reason TEXT;
  ALTER TABLE sessions ADD COLUMN finish_detail TEXT;
  ALTER TABLE checkpoints ADD COLUMN user_metadata TEXT;
  `,
  // Clients of sampling sessions, and in which order samples ended.
  `
  ALTER TABLE samplers ADD COLUMN joined INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE requests ADD COLUMN settled_no INTEGER;
  UPDATE requests SET settled_no = rowid WHERE finished_at IS NOT NULL;
  CREATE INDEX requests_settled ON requests (sampler_id, settled_no)
    WHERE sampler_id IS NOT NULL AND settled_no IS NOT NULL;
  `,
  // Points as rows with summaries in levels instead of chunks of columns. The summaries of series move here, they are few;
  // `old-series.ts` moves their points. Summary columns are of all points but the last.
  `
  ALTER TABLE points RENAME TO old_points;
  ALTER TABLE series_chunks RENAME TO old_chunks;
  ALTER TABLE series RENAME TO old_series;
  DROP INDEX series_by_key;
  CREATE TABLE series (
    series_id INTEGER PRIMARY KEY,
    log_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    key TEXT NOT NULL,
    count INTEGER NOT NULL DEFAULT 1,
    first_x REAL NOT NULL,
    first REAL NOT NULL,
    last_x REAL NOT NULL,
    last REAL NOT NULL,
    merged INTEGER NOT NULL DEFAULT 1,
    least REAL,
    most REAL,
    non_finite INTEGER NOT NULL DEFAULT 0,
    mean REAL NOT NULL DEFAULT 0,
    weight REAL NOT NULL DEFAULT 0
  );
  CREATE UNIQUE INDEX series_by_key ON series (log_id, key, attempt);
  CREATE TABLE points (
    series_id INTEGER NOT NULL,
    x REAL NOT NULL,
    at INTEGER,
    value REAL NOT NULL,
    PRIMARY KEY (series_id, x)
  ) WITHOUT ROWID;
  CREATE TABLE rollups (
    series_id INTEGER NOT NULL,
    level INTEGER NOT NULL,
    x REAL NOT NULL,
    last_x REAL NOT NULL,
    at INTEGER,
    finite INTEGER NOT NULL,
    least REAL,
    most REAL,
    total REAL NOT NULL,
    nan INTEGER NOT NULL,
    plus INTEGER NOT NULL,
    minus INTEGER NOT NULL,
    PRIMARY KEY (series_id, level, x)
  ) WITHOUT ROWID;
  INSERT INTO series
    SELECT series_id, log_id, attempt, key, count, first_x, first, last_x, last, 1, least, most,
      non_finite - (NOT is_finite),
      CASE WHEN is_finite AND weight > 1 THEN (sum - last) / (weight - 1)
        WHEN weight > 0 AND NOT is_finite THEN sum / weight ELSE 0 END,
      max(0, weight - is_finite)
    FROM (SELECT *, typeof(last) <> 'text' AS is_finite FROM (SELECT *,
      json_extract(summary, '$.first') AS first, json_extract(summary, '$.last') AS last,
      json_extract(summary, '$.min') AS least, json_extract(summary, '$.max') AS most,
      json_extract(summary, '$.nonFinite') AS non_finite, json_extract(summary, '$.sum') AS sum,
      json_extract(summary, '$.weight') AS weight FROM old_series));
  DROP TABLE old_series;
  `,
  // Runs by key, for pages of them; the last mark of a kind; bytes of text lines, which are bounded for each owner.
  `
  CREATE INDEX logs_by_key ON logs (owner, is_pinned, updated_at);
  CREATE INDEX marks_by_kind ON marks (log_id, kind, mark_id);
  ALTER TABLE logs ADD COLUMN line_bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE logs SET line_bytes = (
    SELECT coalesce(sum(length(text)), 0) FROM log_lines WHERE log_lines.log_id = logs.log_id);
  CREATE INDEX logs_with_lines ON logs (owner, is_pinned, updated_at) WHERE line_bytes > 0;
  `,
];

/** Brings a database to the newest version; refuses one that a newer server has written. */
export function migrate(database: SqlDatabase): void {
  const version = Number(database.sql("PRAGMA user_version").first()?.["user_version"] ?? 0);
  if (version > steps.length) {
    throw new Error(
      `the database has version ${version}, this server knows up to ${steps.length}: run the newer server or use another data directory`,
    );
  }
  for (let step = version; step < steps.length; step++) {
    database.exec("BEGIN IMMEDIATE");
    database.exec(steps[step]!);
    database.exec(`PRAGMA user_version = ${step + 1}`);
    database.exec("COMMIT");
  }
}
