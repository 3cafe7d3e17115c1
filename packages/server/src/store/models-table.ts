import { parseJson, stringifyJson } from "tinker-ts/wire";
import type { Row, SqlDatabase } from "./sql.js";

/** What an adapter was made with; all of it is needed to make it again. */
export interface LoraSettings {
  readonly rank: number;
  readonly alpha: number;
  /** Decimal text, because seeds have up to 64 bits. */
  readonly seed: string;
  readonly trainAttn: boolean;
  readonly trainMlp: boolean;
  readonly trainUnembed: boolean;
}

/** What a base model is computed with. */
export interface RunPrecision {
  readonly weights: "f32" | "int8";
  /** How values meet int8 weights. */
  readonly activations?: "int8" | "int16";
  /**
   * Bits that the digits of `int16` have together, at least. Runs that do not say so are from before, and have two
   * digits on every processor.
   */
  readonly activationBits?: 16;
}

/**
 * - `creating`: accepted, its first request has not finished yet
 * - `live`: can be trained
 * - `unloaded`: ended by its client or with its session
 * - `failed`: could not be created, or its state was damaged on disk
 */
export type ModelState = "creating" | "live" | "unloaded" | "failed";

/** A training run: one adapter on one base model. */
export interface Model {
  readonly modelId: string;
  readonly sessionId: string;
  readonly owner: string;
  readonly baseModel: string;
  readonly lora: LoraSettings;
  /** What its base model is computed with; a run keeps it, so that its journal repeats bit for bit. */
  readonly precision: RunPrecision;
  readonly userMetadata: Readonly<Record<string, unknown>> | null;
  readonly state: ModelState;
  readonly stateReason: string | null;
  /** The next sequence number. */
  readonly nextSeq: number;
  /** How many operations have changed its weights or gradients so far. */
  readonly applied: number;
  readonly createdAt: number;
  readonly lastRequestAt: number;
  /** What it was computed on so far, in order. @default nothing yet */
  readonly devices?: readonly string[];
}

/** The owner and the state of a model, which decide about its requests. */
export type ModelStatus = Pick<Model, "modelId" | "sessionId" | "owner" | "state" | "stateReason">;

/** Which runs to list. */
export interface RunFilter {
  readonly owner: string;
  /** Also runs of others that have a public checkpoint. */
  readonly isAccessible: boolean;
  readonly projectId: string | null;
}

const filterSql = `(models.owner = ?1 OR (?2 = 1 AND EXISTS (
    SELECT 1 FROM checkpoints WHERE run_id = model_id AND is_public = 1 AND deleted_at IS NULL
  ))) AND (?3 IS NULL OR project_id = ?3)`;

function filterValues({ owner, isAccessible, projectId }: RunFilter) {
  return [owner, isAccessible ? 1 : 0, projectId] as const;
}

/** Training runs, live and past. */
export class ModelsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  insert(model: Model): void {
    this.#database
      .sql(
        `INSERT INTO models (model_id, session_id, owner, base_model, lora, precision, user_metadata,
           state, state_reason, next_seq, applied, created_at, last_request_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        model.modelId,
        model.sessionId,
        model.owner,
        model.baseModel,
        JSON.stringify(model.lora),
        JSON.stringify(model.precision),
        model.userMetadata ? stringifyJson(model.userMetadata) : null,
        model.state,
        model.stateReason,
        model.nextSeq,
        model.applied,
        model.createdAt,
        model.lastRequestAt,
      );
  }

  get(modelId: string): Model | undefined {
    const row = this.#database.sql("SELECT * FROM models WHERE model_id = ?").first(modelId);
    return row && read(row);
  }

  /** The owner and the state of a model, which every request for it needs. */
  status(modelId: string): ModelStatus | undefined {
    const row = this.#database
      .sql("SELECT session_id, owner, state, state_reason FROM models WHERE model_id = ?")
      .first(modelId);
    return (
      row && {
        modelId,
        sessionId: row["session_id"] as string,
        owner: row["owner"] as string,
        state: row["state"] as ModelState,
        stateReason: row["state_reason"] as string | null,
      }
    );
  }

  bySession(sessionId: string): Model[] {
    return this.#database
      .sql("SELECT * FROM models WHERE session_id = ? ORDER BY created_at, model_id")
      .all(sessionId)
      .map(read);
  }

  /** Models that can still be trained. */
  open(): Model[] {
    return this.#database
      .sql("SELECT * FROM models WHERE state IN ('creating', 'live')")
      .all()
      .map(read);
  }

  /** A page of runs, the most recently used first. */
  list(filter: RunFilter, limit: number, offset: number): Model[] {
    return this.#database
      .sql(
        `SELECT models.* FROM models JOIN sessions USING (session_id) WHERE ${filterSql}
         ORDER BY last_request_at DESC, model_id LIMIT ?4 OFFSET ?5`,
      )
      .all(...filterValues(filter), limit, offset)
      .map(read);
  }

  count(filter: RunFilter): number {
    const row = this.#database
      .sql(
        `SELECT count(*) AS total FROM models JOIN sessions USING (session_id) WHERE ${filterSql}`,
      )
      .first(...filterValues(filter));
    return Number(row?.["total"] ?? 0);
  }

  setState(modelId: string, state: ModelState, reason: string | null = null): void {
    this.#database
      .sql("UPDATE models SET state = ?, state_reason = ? WHERE model_id = ?")
      .run(state, reason, modelId);
  }

  /** Adds what a model is computed on from now on. */
  setDevices(modelId: string, devices: readonly string[]): void {
    this.#database
      .sql("UPDATE models SET devices = ? WHERE model_id = ?")
      .run(devices.join(","), modelId);
  }

  /** Records that a request was handled: the next sequence number and the count of applied changes. */
  advance(modelId: string, nextSeq: number, applied: number, at: number): void {
    this.#database
      .sql("UPDATE models SET next_seq = ?, applied = ?, last_request_at = ? WHERE model_id = ?")
      .run(nextSeq, applied, at, modelId);
  }

  /** Forgets runs that ended long ago and have no checkpoint left. */
  prune(endedBefore: number): void {
    this.#database
      .sql(
        `DELETE FROM models WHERE state IN ('unloaded', 'failed') AND last_request_at < ?
           AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.run_id = models.model_id)`,
      )
      .run(endedBefore);
  }
}

function read(row: Row): Model {
  return {
    modelId: row["model_id"] as string,
    sessionId: row["session_id"] as string,
    owner: row["owner"] as string,
    baseModel: row["base_model"] as string,
    lora: JSON.parse(row["lora"] as string) as LoraSettings,
    precision: readPrecision(row["precision"]),
    userMetadata:
      row["user_metadata"] === null
        ? null
        : (parseJson(row["user_metadata"] as string) as Record<string, unknown>),
    state: row["state"] as ModelState,
    stateReason: row["state_reason"] as string | null,
    nextSeq: Number(row["next_seq"]),
    applied: Number(row["applied"]),
    createdAt: Number(row["created_at"]),
    lastRequestAt: Number(row["last_request_at"]),
    devices: (row["devices"] as string).split(",").filter((device) => device !== ""),
  };
}

/** Runs that were made before this was recorded had 32-bit floats. */
function readPrecision(value: unknown): RunPrecision {
  return typeof value === "string" ? (JSON.parse(value) as RunPrecision) : { weights: "f32" };
}
