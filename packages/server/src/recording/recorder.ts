import type { StudioMark } from "tinker-ts/wire";
import type { ServerLimits } from "../limits.js";
import type { Logger } from "../log/logger.js";
import type { Mark } from "../store/logs-table.js";
import type { PointKind, PointRow } from "../store/points-table.js";
import { excesses } from "../store/fair-level.js";
import type { RequestHead } from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { dataExhibits, type ShownPass } from "./data-exhibits.js";
import type { EventHub } from "./event-hub.js";
import { ExhibitKeeper } from "./exhibit-keeper.js";
import { foldPoints } from "./fold-points.js";
import { OpenPoint } from "./merge-points.js";
import { toPlain } from "./numbers.js";
import { tellRun } from "./tell-run.js";

/** Which exhibits are kept: some of each step, all, none. */
export type Capture = "sample" | "all" | "off";

/** What a request has to tell the studio. */
export interface Telling {
  /** Values at the present step. */
  readonly point?: { readonly kind: PointKind; readonly metrics: Readonly<Record<string, number>> };
  /** The loss, which tells what kind of run this is. */
  readonly lossFn?: string;
  /** What was passed. */
  readonly pass?: ShownPass;
  /** Something that happened. */
  readonly mark?: Pick<Mark, "kind" | "text" | "subject">;
}

/** When a request came, began and ended. */
export interface Times {
  readonly startedAt: number | null;
  readonly finishedAt: number;
  readonly tookMs: number;
  readonly tokens: number;
}

/** A telling on its way: written in the transaction of its request, known once that is committed. */
export interface Note {
  readonly write: () => void;
  readonly committed: () => void;
}

/** What is known of a run while it goes on. */
interface RunState {
  readonly logId: string;
  readonly owner: string;
  steps: number;
  kind: string;
  open: OpenPoint | null;
  /** Rows since the last time that they became columns. */
  rows: number;
  /** When the row of the run was touched last. */
  touchedAt: number;
  /** Some data of the present step are kept. */
  hasExhibits: boolean;
}

/** Values that have not been told to pages yet. */
interface Untold {
  readonly owner: string;
  readonly points: Map<string, OpenPoint>;
}

const foldRows = 256;
const touchMs = 10_000;
const tellMs = 250;
/** Runs that are kept in mind; of others it is read again what they came to. */
const maxStates = 4096;

const nothing: Note = { write: () => {}, committed: () => {} };

/**
 * Keeps what every training request came to, so that it can be seen by whom it concerns: from any client,
 * without a logger.
 *
 * - Points and marks are written in the transaction that ends the request. Replaying the journal does not
 *   pass here, so nothing counts twice.
 * - One row per request is all that is written then; rows become columns many at a time, and nothing is
 *   reduced or told while nobody looks.
 */
export class Recorder {
  readonly hub: EventHub;
  readonly capture: Capture;
  /** Where exhibits go. */
  readonly exhibits: ExhibitKeeper;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #limits: ServerLimits;
  readonly #isOn: boolean;
  readonly #states = new Map<string, RunState>();
  readonly #untold = new Map<string, Untold>();
  readonly #changed = new Map<string, string>();
  readonly #work = new Set<Promise<void>>();
  readonly #folding = new Set<string>();
  /** Called with the runs that have changed, a few times a second, while somebody looks. */
  onChanged: (owner: string, logIds: readonly string[]) => void = () => {};
  readonly #versions = new Map<string, number>();
  #cancelTell: (() => void) | undefined;

  constructor(
    parts: {
      readonly store: Store;
      readonly clock: Clock;
      readonly logger: Logger;
      readonly limits: ServerLimits;
      readonly hub: EventHub;
    },
    options: { readonly capture: Capture; readonly isOn: boolean },
  ) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#limits = parts.limits;
    this.hub = parts.hub;
    this.exhibits = new ExhibitKeeper(parts);
    this.capture = options.capture;
    this.#isOn = options.isOn;
  }

  /** What a request of a model has to tell. */
  note(
    model: { readonly modelId: string; readonly owner: string },
    request: Pick<RequestHead, "kind" | "acceptedAt">,
    telling: Telling,
    times: Times,
  ): Note {
    if (!this.#isOn) return nothing;
    const { modelId } = model;
    const { points, logs } = this.#store;
    const known = this.#states.get(modelId) ?? this.#load(modelId);
    const isNew = known === undefined;
    const state = known ?? newState(modelId, model.owner);
    const { steps: x } = state;
    const { finishedAt: at } = times;
    const row = telling.point && toRow(telling.point, x, request, times);
    const kind = kindOf(telling.lossFn) ?? state.kind;
    const isTouched = at - state.touchedAt >= touchMs || kind !== state.kind;
    const mark = telling.mark && { x, at, ...telling.mark };
    const isStep = telling.point?.kind === "step";
    return {
      write: () => {
        if (isNew) {
          logs.insert({ logId: modelId, owner: model.owner, source: "server", createdAt: at });
        }
        if (row) points.add(modelId, row);
        if (mark) logs.addMark(modelId, mark);
        if (isTouched) logs.change(modelId, { updatedAt: at, kind });
      },
      committed: () => {
        this.#remember(state);
        state.kind = kind;
        if (isTouched) state.touchedAt = at;
        if (row) this.#noteRow(state, row);
        if (mark) this.#tellMark(state, mark);
        if (telling.pass) this.#keepData(state, x, telling.pass, at);
        if (isStep) {
          state.steps++;
          state.hasExhibits = false;
        }
        this.noteChange(state.owner, modelId);
      },
    };
  }

  /** Steps that a model has done; null when it is not known. */
  stepsOf(modelId: string): number | null {
    const state = this.#states.get(modelId) ?? this.#load(modelId);
    return state?.steps ?? null;
  }

  /** Changes whenever a run has got a point. */
  versionOf(logId: string): number {
    return this.#versions.get(logId) ?? 0;
  }

  /** Points of a logger; runs inside a transaction. What it returns is to be called once that is committed. */
  addLogged(owner: string, logId: string, row: PointRow): () => void {
    this.#store.points.add(logId, row);
    return () => {
      const state = this.#states.get(logId) ?? newState(logId, owner);
      this.#remember(state);
      this.#noteRow(state, row);
      this.noteChange(owner, logId);
    };
  }

  /** A mark that no request of a model has made. */
  async addMark(
    owner: string,
    logId: string,
    mark: Pick<Mark, "kind" | "text" | "subject"> & { readonly x?: number },
  ): Promise<void> {
    const x = mark.x ?? this.stepsOf(logId) ?? 0;
    const whole = { at: this.#clock.now(), ...mark, x };
    await this.#store.write(() => this.#store.logs.addMark(logId, whole));
    this.hub.publish(owner, `run:${logId}`, { kind: "mark", run: logId, mark: toStudio(whole) });
    this.noteChange(owner, logId);
  }

  /** Says that something about a run has changed. */
  noteChange(owner: string, logId: string): void {
    if (!this.hub.isWatched) return;
    this.#changed.set(logId, owner);
    this.#cancelTell ??= this.#clock.after(tellMs, () => {
      this.#cancelTell = undefined;
      this.#tell();
    });
  }

  /** Removes files that a crash has left without a row. */
  async removeLeftovers(): Promise<void> {
    const { exhibits, exhibitFiles } = this.#store;
    await exhibitFiles.remove(await exhibitFiles.findUnknown(exhibits.files()));
  }

  /** Turns rows that have been waiting into columns, and makes room. */
  async tidy(): Promise<void> {
    for (const logId of this.#store.points.crowded(2)) {
      if (!this.#isBusy(logId)) await this.#fold(logId);
    }
    await this.#makeRoom();
  }

  /** Waits for what is on its way to the disk. */
  async close(): Promise<void> {
    this.#cancelTell?.();
    await Promise.all([this.exhibits.settled(), ...this.#work]);
  }

  /** Forgets what is known of a run; the tables are the caller's business. */
  forget(logId: string): void {
    this.#states.delete(logId);
    this.exhibits.forget(logId);
    this.#versions.set(logId, this.versionOf(logId) + 1);
  }

  #load(logId: string): RunState | undefined {
    const log = this.#store.logs.get(logId);
    if (!log) return undefined;
    const state = newState(logId, log.owner);
    state.kind = log.kind;
    state.steps = log.steps;
    for (const row of this.#store.points.rows(logId, Number.MAX_SAFE_INTEGER)) {
      state.rows++;
      if (row.kind === "step") state.steps = Math.max(state.steps, row.x + 1);
      state.open = joined(state.open, row);
    }
    this.#remember(state);
    return state;
  }

  #noteRow(state: RunState, row: PointRow): void {
    state.open = joined(state.open, row);
    this.#versions.set(state.logId, this.versionOf(state.logId) + 1);
    if (++state.rows >= foldRows && !this.#folding.has(state.logId)) {
      state.rows = 0;
      this.#inBackground(() => this.#fold(state.logId), "points could not be put in order");
    }
    if (!this.hub.isWatched) return;
    const untold = this.#untold.get(state.logId) ?? { owner: state.owner, points: new Map() };
    this.#untold.set(state.logId, untold);
    untold.points.set(`${row.attempt}:${row.x}`, state.open);
  }

  async #fold(logId: string): Promise<void> {
    if (this.#folding.has(logId)) return;
    this.#folding.add(logId);
    try {
      const { logs } = this.#store;
      const steps = this.stepsOf(logId) ?? 0;
      let isMore = true;
      while (isMore) {
        isMore = await this.#store.write(() => {
          const source = logs.get(logId)?.source;
          if (source === undefined) return false;
          // A logger says itself how far it is.
          if (source === "server") logs.change(logId, { steps });
          return foldPoints(this.#store, logId);
        });
      }
    } finally {
      this.#folding.delete(logId);
    }
  }

  #keepData(state: RunState, step: number, pass: ShownPass, at: number): void {
    if (this.capture === "off") return;
    if (this.capture === "sample" && state.hasExhibits) return;
    state.hasExhibits = true;
    const { logId, owner } = state;
    const place = {
      owner,
      logId,
      modelId: logId,
      step,
      kind: "datum",
      split: "train",
      at,
    } as const;
    this.exhibits.add(place, () => dataExhibits(pass, this.capture === "all", `${logId}:${step}`));
  }

  #tellMark({ owner, logId }: RunState, mark: Mark): void {
    tellRun({ hub: this.hub, store: this.#store }, owner, logId, (run) => ({
      kind: "mark",
      run,
      mark: toStudio(mark),
    }));
    if (mark.kind !== "checkpoint" || mark.subject === null) return;
    const event = { kind: "checkpoint", path: mark.subject, change: "saved" } as const;
    this.hub.publish(owner, "runs", event);
  }

  #tell(): void {
    for (const [run, { owner, points }] of this.#untold) {
      const told = [...points.values()].map((point) => ({
        x: point.x,
        at: point.at,
        attempt: point.attempt,
        values: Object.fromEntries(
          [...point.values()].map(([key, value]) => [key, toPlain(value)]),
        ),
      }));
      tellRun({ hub: this.hub, store: this.#store }, owner, run, (id) => ({
        kind: "series",
        run: id,
        points: told,
      }));
    }
    this.#untold.clear();
    const byOwner = new Map<string, string[]>();
    for (const [logId, owner] of this.#changed) {
      byOwner.set(owner, [...(byOwner.get(owner) ?? []), logId]);
    }
    this.#changed.clear();
    for (const [owner, logIds] of byOwner) this.onChanged(owner, logIds);
  }

  async #makeRoom(): Promise<void> {
    const { points, exhibits, logs, exhibitFiles } = this.#store;
    const { maxSeriesBytes, maxExhibitBytes, recordTtlMs } = this.#limits;
    const unused = await this.#store.write(() => {
      const dropped: string[] = [];
      const remove = (logId: string): void => {
        points.remove(logId);
        dropped.push(...exhibits.remove(logId));
        logs.remove(logId);
        this.forget(logId);
      };
      for (const logId of logs.outdated(this.#clock.now() - recordTtlMs)) remove(logId);
      // What one owner records costs no other owner anything.
      for (const [owner] of excesses(points.sizes(), maxSeriesBytes)) {
        // Curves of runs that still go on stay whatever they take.
        for (const logId of logs.oldest(owner, 10)) if (!this.#isBusy(logId)) points.remove(logId);
      }
      for (const [owner, excess] of excesses(exhibits.sizes(), maxExhibitBytes)) {
        dropped.push(...exhibits.dropOldest(owner, excess));
      }
      return dropped;
    });
    await exhibitFiles.remove(unused);
  }

  #isBusy(logId: string): boolean {
    const state = this.#states.get(logId);
    return state !== undefined && this.#clock.now() - state.touchedAt < 3 * touchMs;
  }

  /** Remembers what is known of a run; of many runs those that were heard of last. */
  #remember(state: RunState): void {
    this.#states.delete(state.logId);
    this.#states.set(state.logId, state);
    const [oldest] = this.#states.keys();
    if (this.#states.size > maxStates && oldest !== undefined) this.#states.delete(oldest);
  }

  #inBackground(work: () => Promise<void>, problem: string): void {
    const running = work()
      .catch((error: unknown) => this.#logger.warn(problem, { error: String(error) }))
      .finally(() => this.#work.delete(running));
    this.#work.add(running);
  }
}

function newState(logId: string, owner: string): RunState {
  return {
    logId,
    owner,
    steps: 0,
    kind: "unknown",
    open: null,
    rows: 0,
    touchedAt: Number.NEGATIVE_INFINITY,
    hasExhibits: false,
  };
}

function joined(open: OpenPoint | null, { attempt, x, kind, at, values }: PointRow): OpenPoint {
  const isSame = open !== null && open.x === x && open.attempt === attempt;
  const point = isSame ? open : new OpenPoint(attempt, x);
  point.add(kind, at, values);
  return point;
}

function toRow(
  { kind, metrics }: NonNullable<Telling["point"]>,
  x: number,
  { acceptedAt }: Pick<RequestHead, "acceptedAt">,
  { startedAt, finishedAt, tookMs, tokens }: Times,
): PointRow {
  const prefix = kind === "forward" ? "forward/" : "";
  const values: Record<string, PointRow["values"][string]> = {};
  for (const [key, value] of Object.entries(metrics)) values[prefix + key] = toPlain(value);
  values["server/wait_seconds:sum"] = ((startedAt ?? finishedAt) - acceptedAt) / 1000;
  values["server/compute_seconds:sum"] = tookMs / 1000;
  if (tokens > 0) values["server/tokens:sum"] = tokens;
  return { attempt: 1, x, at: finishedAt, kind, values };
}

function kindOf(lossFn: string | undefined): string | undefined {
  if (lossFn === undefined) return undefined;
  return lossFn === "cross_entropy" ? "supervised" : "rl";
}

function toStudio({ x, at, kind, text, subject }: Mark): StudioMark {
  return { x, at, kind: kind as StudioMark["kind"], text, subject };
}
