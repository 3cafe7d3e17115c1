import type { StudioNumber, StudioRun, StudioStatus, StudioSummary } from "tinker-ts/wire";
import type { Core } from "../core.js";
import { toNumber, toPlain } from "../store/sql.js";
import { LruMap } from "../lru-map.js";
import type { LogKey, LogRecord, Mark } from "../store/logs-table.js";
import type { Model } from "../store/models-table.js";
import type { LogFolders } from "./log-folders.js";
import type { SeriesRow, SeriesTable } from "../store/series-table.js";
import { readCurve } from "./read-series.js";
import { joinedSeries, storedSeries, type RunSeries } from "./run-series.js";

/** Metrics that mean the loss per trained token, the best one first. */
const nllKeys = ["nll", "train_mean_nll", "train/nll", "loss", "train_loss"];
/** Metrics that mean the reward of rollouts. */
const rewardKeys = ["env/all/reward/total", "reward/total", "reward", "env/all/reward/mean"];
/** Names of checkpoints that say nothing of their run. */
const plainNames =
  /^(\d+|(step|checkpoint|ckpt|iter|iteration|epoch)?[-_]?\d+|final|latest|last|best|state|weights|sampler|checkpoint|studio-.*)$/i;
/** Where a configuration names the base model. */
export const baseModelNames = ["model_name", "base_model", "baseModel"];
const curveLength = 32;
const runningMs = 120_000;

/** What is found out from the points of a run. */
interface Figures {
  readonly nll: StudioSummary | null;
  readonly reward: StudioSummary | null;
  readonly tokensPerSecond: number | null;
  readonly curve: readonly (number | null)[];
  readonly progress: number | null;
  readonly lastX: number | null;
}

/** Most runs with remembered figures. */
const maxFigures = 10_000;
/** Runs that are read at a time. */
const pageSize = 100;

/** Runs as lists show them. What follows from points is remembered until there are more. */
export class RunRows {
  readonly #core: Core;
  readonly #folders: LogFolders;
  readonly #figures = new LruMap<string, { readonly version: string; readonly figures: Figures }>(
    maxFigures,
  );

  constructor(core: Core, folders: LogFolders) {
    this.#core = core;
    this.#folders = folders;
  }

  /** The runs of an owner behind a key, in the order of lists. */
  *after(owner: string, key: LogKey | null, withArchived: boolean): Generator<LogRecord, void> {
    const { logs } = this.#core.context.store;
    for (let last = key; ;) {
      const page = logs.page(owner, last, pageSize, withArchived);
      for (const log of page) if (this.isShown(log)) yield log;
      if (page.length < pageSize) return;
      last = page.at(-1)!;
    }
  }

  /** False for runs of folders that are not given any more. */
  isShown({ source, logId }: LogRecord): boolean {
    return source !== "folder" || this.#folders.has(logId);
  }

  /** All points that belong to a run: its own, and those of its models. */
  series(log: LogRecord): RunSeries {
    const { store } = this.#core.context;
    const own = storedSeries(store, log.logId);
    const models = log.source === "log" ? store.logs.models(log.logId) : [];
    if (models.length === 0) return own;
    return joinedSeries(
      own,
      models.map((modelId) => storedSeries(store, modelId)),
    );
  }

  /** One run, also of a model that is part of another. */
  row(log: LogRecord): StudioRun {
    const { store, clock, recorder } = this.#core.context;
    const { logId } = log;
    const modelIds = modelsOf(log, () => store.logs.models(logId));
    const models = modelIds.flatMap((id) => store.models.get(id) ?? []);
    const [model] = models;
    const figures = this.#figuresOf(log, modelIds);
    const updatedAt = Math.max(log.updatedAt, ...models.map((one) => one.lastRequestAt));
    // Steps of the optimizer where a model is known, else what the log calls its last step.
    const done = modelIds.flatMap((id) => recorder.stepsOf(id) ?? []);
    const step = done.length > 0 ? Math.max(...done) : (figures.lastX ?? 0);
    const all = [...new Set([logId, ...modelIds])];
    const failed = all.map((id) => store.logs.lastMark(id, "failed")).find(Boolean);
    const parent = all.map((id) => store.logs.lastMark(id, "loaded")).find(Boolean);
    return {
      id: logId,
      name: log.name ?? nameOf(log, model, this.#core),
      source: log.source,
      kind: kindOf(
        log,
        modelIds.flatMap((id) => store.logs.get(id) ?? []),
      ),
      group: log.group,
      tags: log.tags,
      baseModel: model?.baseModel ?? configText(log.config, baseModelNames),
      rank: model?.lora.rank ?? configNumber(log.config, ["lora_rank", "rank"]),
      ...this.#status(log, models, failed, updatedAt, clock.now()),
      step,
      progress: figures.progress,
      nll: figures.nll,
      reward: figures.reward,
      tokensPerSecond: figures.tokensPerSecond,
      curve: figures.curve,
      models: modelIds,
      parent: parent?.subject ?? null,
      attempt: log.attempt,
      dropped: log.dropped,
      isPinned: log.isPinned,
      archivedAt: log.archivedAt,
      createdAt: Math.min(log.createdAt, model?.createdAt ?? log.createdAt),
      updatedAt,
    };
  }

  #status(
    log: LogRecord,
    models: readonly Model[],
    failed: Mark | undefined,
    updatedAt: number,
    now: number,
  ): { status: StudioStatus; statusReason: string | null } {
    const { runs, context } = this.#core;
    const isPaused = [
      log,
      ...models.flatMap((model) => context.store.logs.get(model.modelId) ?? []),
    ].some(({ pausedAt }) => pausedAt !== null);
    if (log.status !== null)
      return { status: log.status as StudioStatus, statusReason: log.statusReason };
    const isOpen = models.some(({ state }) => state === "creating" || state === "live");
    if (isPaused && (isOpen || log.source === "log")) {
      return { status: "paused", statusReason: "paused in the studio" };
    }
    const broken = models.find(({ state }) => state === "failed");
    if (broken) return { status: "failed", statusReason: broken.stateReason };
    const isWorking = models.some(({ modelId }) => (runs.get(modelId)?.pendingCount ?? 0) > 0);
    if (isWorking) return { status: "running", statusReason: null };
    const lastAt = Math.max(0, ...models.map(({ lastRequestAt }) => lastRequestAt));
    if (failed && failed.at >= lastAt) return { status: "failed", statusReason: failed.text };
    if (isOpen || models.length === 0) {
      return { status: now - updatedAt < runningMs ? "running" : "idle", statusReason: null };
    }
    const reason = models[0]?.stateReason ?? null;
    const isCutOff = /^no sign of life|^it was (stopped|closed) in the studio/.test(reason ?? "");
    if (isCutOff) return { status: "stopped", statusReason: reason };
    return { status: "completed", statusReason: reason };
  }

  #figuresOf(log: LogRecord, modelIds: readonly string[]): Figures {
    const { hub } = this.#core.context.recorder;
    const version = [log.logId, ...modelIds].map((id) => hub.versionOf(id)).join(" ");
    const known = this.#figures.get(log.logId);
    if (known?.version === version) return known.figures;
    const figures = figuresOf(this.#core.context.store.series, this.series(log));
    this.#figures.set(log.logId, { version, figures });
    return figures;
  }
}

/** What is found out from the points of a run. */
function figuresOf(table: SeriesTable, series: RunSeries): Figures {
  const find = (keys: readonly string[]): [string, readonly SeriesRow[]] | null => {
    const key = keys.find((one) => series.attempts(one).length > 0);
    return key === undefined ? null : [key, series.attempts(key)];
  };
  const nll = find(nllKeys);
  const reward = find(rewardKeys);
  const pace = series.attempts("server/tokens_per_second").at(-1);
  const progress = ["progress", "progress/done_frac"]
    .map((key) => toNumber(series.attempts(key).at(-1)?.last))
    .find((value) => value !== undefined);
  const own = series.keys.filter((key) => !key.startsWith("server/"));
  const lasts = own.map((key) => series.attempts(key).at(-1)!.lastX);
  return {
    nll: nll && summaryOf(...nll),
    reward: reward && summaryOf(...reward),
    tokensPerSecond: pace?.smoothedLast ?? null,
    curve: curveOf(table, (nll ?? reward)?.[1].at(-1)),
    progress: progress === undefined ? null : Math.min(1, Math.max(0, progress)),
    lastX: lasts.length > 0 ? Math.max(...lasts) : null,
  };
}

/** What is known of a metric over all attempts. */
export function summaryOf(key: string, attempts: readonly SeriesRow[]): StudioSummary {
  const last = attempts.at(-1)!;
  const numbers = (values: readonly (number | null)[]): number[] =>
    values.filter((value) => value !== null);
  const mins = numbers(attempts.map(({ min }) => min));
  const maxs = numbers(attempts.map(({ max }) => max));
  return {
    key,
    first: attempts[0]!.first,
    last: last.last,
    smoothedLast: toPlain(last.smoothedLast),
    min: mins.length > 0 ? Math.min(...mins) : null,
    max: maxs.length > 0 ? Math.max(...maxs) : null,
    nonFinite: attempts.reduce((sum, { nonFinite }) => sum + nonFinite, 0),
  };
}

function curveOf(table: SeriesTable, last: SeriesRow | undefined): (number | null)[] {
  if (!last) return [];
  const { mean } = readCurve(table, last, curveLength);
  return [...mean].map((value) => (Number.isFinite(value) ? value : null));
}

function nameOf(log: LogRecord, model: Model | undefined, { context }: Core): string {
  const given = model?.userMetadata?.["name"] ?? model?.userMetadata?.["run_name"];
  if (typeof given === "string" && given !== "") return given;
  const saved = model ? context.store.checkpoints.byRun(model.modelId) : [];
  // The oldest one that says something, so that the name does not change with every save.
  const named = saved.findLast(({ name }) => !plainNames.test(name));
  if (named) return named.name;
  const base = model?.baseModel.split("/").at(-1);
  return base === undefined ? log.logId : `${base} ${log.logId.slice(0, 8)}`;
}

function kindOf(log: LogRecord, models: readonly LogRecord[]): StudioRun["kind"] {
  const known = [log, ...models].map(({ kind }) => kind).find((kind) => kind !== "unknown");
  return (known ?? "unknown") as StudioRun["kind"];
}

export function configText(config: string | null, names: readonly string[]): string | null {
  const found = configValue(config, names);
  return typeof found === "string" ? found : null;
}

function configNumber(config: string | null, names: readonly string[]): number | null {
  const found = configValue(config, names);
  return typeof found === "number" ? found : null;
}

function configValue(config: string | null, names: readonly string[]): unknown {
  if (config === null) return undefined;
  const parsed: unknown = JSON.parse(config);
  if (typeof parsed !== "object" || parsed === null) return undefined;
  const name = names.find((one) => Object.hasOwn(parsed, one));
  return name === undefined ? undefined : (parsed as Record<string, unknown>)[name];
}

/** A model is its own; a logger's are those it watches; a folder has none here. */
function modelsOf({ source, logId }: LogRecord, watched: () => string[]): string[] {
  if (source === "server") return [logId];
  return source === "log" ? watched() : [];
}

/** A value of a row to sort by. */
export function sortValue(row: StudioRun, field: string): number | string {
  const metric = /^(nll|reward)(?:\.(first|last|min|max|smoothedLast))?$/.exec(field);
  if (metric) {
    const summary = row[metric[1] as "nll" | "reward"];
    const value: StudioNumber | null | undefined = summary?.[(metric[2] ?? "last") as "last"];
    return toNumber(value) ?? Number.NaN;
  }
  switch (field) {
    case "name":
      return row.name.toLowerCase();
    case "model":
      return row.baseModel ?? "";
    case "state":
      return row.status;
    case "step":
      return row.step;
    case "created":
      return row.createdAt;
    case "pace":
      return row.tokensPerSecond ?? Number.NaN;
    default:
      return row.updatedAt;
  }
}
