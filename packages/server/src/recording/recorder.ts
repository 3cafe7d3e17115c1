import type { ServerLimits } from "../prices.js";
import type { Logger } from "../log/logger.js";
import type { Mark } from "../store/logs-table.js";
import { toPlain } from "../store/sql.js";
import type { PointKind, PointRow } from "../store/series-batch.js";
import { LruMap } from "../lru-map.js";
import { excesses } from "../store/fair-level.js";
import type { RequestRow } from "../store/requests-table.js";
import type { Store } from "../store/store.js";
import type { Clock } from "../time/clock.js";
import { dataExhibits, type ShownPass } from "./data-exhibits.js";
import type { EventHub } from "./event-hub.js";
import { ExhibitKeeper } from "./exhibit-keeper.js";

/** Which exhibits are kept: some of each step, all, none. */
export type Capture = (typeof captures)[number];

const captures = ["sample", "all", "off"] as const;

/** True for the name of a choice of what is captured. */
export function isCapture(value: unknown): value is Capture {
  return (captures as readonly unknown[]).includes(value);
}

/** What a request changes in the studio. */
export interface RunUpdate {
  /** Values at the present step. */
  readonly point?: { readonly kind: PointKind; readonly metrics: Readonly<Record<string, number>> };
  /** The loss, from which the kind of the run follows. */
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

/** An update under way: written in the transaction of its request, known once that is committed. */
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
  /** When the row of the run was touched last. */
  touchedAt: number;
  /** Some data of the present step are kept. */
  hasExhibits: boolean;
}

const touchMs = 10_000;
/** Runs that are kept in mind; of others it is read again what they came to. */
const maxStates = 4096;

const nothing: Note = { write: () => {}, committed: () => {} };

/**
 * Keeps what every training request came to, so that it can be seen by whom it concerns: from any client,
 * without a logger.
 *
 * - Points and marks are written in the transaction that ends the request. Replaying the journal does not
 *   pass here, so nothing counts twice.
 */
export class Recorder {
  readonly hub: EventHub;
  /** Where exhibits go. */
  readonly exhibits: ExhibitKeeper;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #limits: ServerLimits;
  #capture: Capture;
  readonly #isOn: boolean;
  readonly #states = new LruMap<string, RunState>(maxStates);
  readonly #work = new Set<Promise<void>>();
  #isClosing = false;

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
    this.#capture = options.capture;
    this.#isOn = options.isOn;
  }

  /** Which training data, rollouts and samples are kept for the studio. */
  get capture(): Capture {
    return this.#capture;
  }

  /** Changes what is kept from the next step on. */
  setCapture(capture: Capture): void {
    this.#capture = capture;
  }

  /** Notes the update of a request of a model. */
  note(
    model: { readonly modelId: string; readonly owner: string },
    request: Pick<RequestRow, "kind" | "acceptedAt">,
    update: RunUpdate,
    times: Times,
  ): Note {
    if (!this.#isOn) return nothing;
    const { modelId } = model;
    const { series, logs } = this.#store;
    const known = this.#states.get(modelId) ?? this.#load(modelId);
    const isNew = known === undefined;
    const state = known ?? newState(modelId, model.owner);
    const { steps: x } = state;
    const { finishedAt: at } = times;
    const row = update.point && toRow(update.point, x, request, times);
    const kind = kindOf(update.lossFn) ?? state.kind;
    const isTouched = at - state.touchedAt >= touchMs || kind !== state.kind;
    const mark = update.mark && { x, at, ...update.mark };
    const isStep = update.point?.kind === "step";
    return {
      write: () => {
        if (isNew) {
          logs.insert({ logId: modelId, owner: model.owner, source: "server", createdAt: at });
        }
        if (row) {
          const batch = series.batch(modelId);
          batch.add(row);
          batch.write();
        }
        if (mark) logs.addMark(modelId, mark);
        logs.change(modelId, {
          ...(isTouched ? { updatedAt: at, kind } : {}),
          ...(isStep ? { steps: x + 1 } : {}),
        });
      },
      committed: () => {
        this.#states.set(state.logId, state);
        state.kind = kind;
        if (isTouched) state.touchedAt = at;
        if (update.pass) this.#keepData(state, x, update.pass, at);
        if (isStep) {
          state.steps++;
          state.hasExhibits = false;
        }
        const isSaved = mark?.kind === "checkpoint" && mark.subject !== null;
        const changes = [
          ...(row ? (["series"] as const) : []),
          ...(isSaved ? (["checkpoint"] as const) : []),
        ];
        this.hub.noteChange(state.owner, modelId, ...changes);
      },
    };
  }

  /** Steps that a model has done; null when it is not known. */
  stepsOf(modelId: string): number | null {
    const state = this.#states.get(modelId) ?? this.#load(modelId);
    return state?.steps ?? null;
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
    this.hub.noteChange(owner, logId);
  }

  /** Removes files that a crash has left without a row. */
  async removeLeftovers(): Promise<void> {
    const { exhibits, exhibitFiles } = this.#store;
    await exhibitFiles.remove(await exhibitFiles.findUnknown(exhibits.files()));
  }

  /** Moves what a server of an older version has stored, in parts between other writes. */
  moveOldSeries(): void {
    const moving = this.whenMoved(null).catch((error: unknown) => {
      const problem =
        "curves of an older version could not be moved; they are tried again with the next start";
      this.#logger.warn(problem, { error: String(error) });
    });
    this.inBackground(moving);
  }

  /** True once the server closes: work in the background ends soon. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Has the end of the server wait for work that uses its tables. */
  inBackground(work: Promise<void>): void {
    this.#work.add(work);
    void work.catch(() => {}).finally(() => this.#work.delete(work));
  }

  /** Resolves once all points of a run, or of all, are where they are read. */
  async whenMoved(logId: string | null): Promise<void> {
    const { oldSeries } = this.#store;
    if (!oldSeries.has(logId)) return;
    while (!this.#isClosing && oldSeries.has(logId)) {
      await this.#store.write(() => oldSeries.moveChunk(logId));
    }
    if (logId !== null)
      this.hub.noteChange(this.#store.logs.get(logId)?.owner ?? "", logId, "series");
  }

  /** Makes room: removes what is old, and the oldest of owners with more than their share. */
  async tidy(): Promise<void> {
    const { series, exhibits, logs, exhibitFiles } = this.#store;
    const { maxSeriesBytes, maxExhibitBytes, recordTtlMs, maxRuns } = this.#limits;
    const now = this.#clock.now();
    const unused = await this.#store.write(() => {
      const dropped: string[] = [];
      const crowded = logs.crowded(maxRuns).flatMap((owner) => logs.longestUntouched(owner, 20));
      for (const logId of [...logs.outdated(now - recordTtlMs), ...crowded]) {
        dropped.push(...this.remove(logId));
      }
      // What one owner records costs no other owner anything.
      for (const [owner] of excesses(series.sizes(), maxSeriesBytes)) {
        // Curves of runs that still go on stay whatever they take.
        for (const logId of logs.oldest(owner, now - 3 * touchMs, 10)) series.remove(logId);
      }
      for (const [owner, excess] of excesses(exhibits.sizes(), maxExhibitBytes)) {
        dropped.push(...exhibits.dropOldest(owner, excess));
      }
      return dropped;
    });
    await exhibitFiles.remove(unused);
  }

  /** Removes a run from all tables, within a transaction; returns files that are not needed any more. */
  remove(logId: string): string[] {
    const { series, exhibits, logs } = this.#store;
    series.remove(logId);
    logs.remove(logId);
    this.forget(logId);
    return exhibits.remove(logId);
  }

  /** Waits for what is on its way to the disk. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.hub.close();
    await Promise.allSettled([this.exhibits.settled(), ...this.#work]);
  }

  /** Forgets what is known of a run; the tables are the caller's business. */
  forget(logId: string): void {
    this.#states.delete(logId);
    this.exhibits.forget(logId);
  }

  #load(logId: string): RunState | undefined {
    const log = this.#store.logs.get(logId);
    if (!log) return undefined;
    const state = newState(logId, log.owner);
    state.kind = log.kind;
    state.steps = log.steps;
    this.#states.set(state.logId, state);
    return state;
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
}

function newState(logId: string, owner: string): RunState {
  return {
    logId,
    owner,
    steps: 0,
    kind: "unknown",
    touchedAt: Number.NEGATIVE_INFINITY,
    hasExhibits: false,
  };
}

function toRow(
  { kind, metrics }: NonNullable<RunUpdate["point"]>,
  x: number,
  { acceptedAt }: Pick<RequestRow, "acceptedAt">,
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
