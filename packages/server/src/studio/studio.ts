import { randomBytes } from "node:crypto";
import type {
  StudioControls,
  StudioLabel,
  StudioLog,
  StudioMark,
  StudioRun,
  StudioRunDetail,
  StudioRuns,
  StudioSeries,
  StudioSpans,
  StudioView,
  StudioViews,
} from "tinker-ts/wire";
import type { Core } from "../core.js";
import { badRequest, conflict, notFound } from "../errors/api-error.js";
import type { LineRange, TextLine } from "../store/lines-table.js";
import type { LogKey, LogRecord } from "../store/logs-table.js";
import type { LogFolders } from "./log-folders.js";
import { runFilter } from "./filter-runs.js";
import { scopedLogId } from "./log-lines.js";
import { SeriesReader, type SeriesQuery } from "./read-series.js";
import { RunRows, sortValue, summaryOf } from "./run-rows.js";
import { checkpointRows } from "./checkpoint-rows.js";

/** Which runs are wanted. */
export interface RunsQuery {
  /** Only these; null for all. */
  readonly ids: ReadonlySet<string> | null;
  readonly text: string;
  readonly sort: string;
  readonly cursor: string | null;
  readonly limit: number;
  readonly withArchived: boolean;
}

/** Which lines of text. */
export interface LineFilter extends LineRange {
  readonly limit: number;
  readonly level: string | null;
  readonly text: string;
}

const maxMarks = 2000;
/** Runs that a list can put into another order; those that were changed longer ago follow as they are. */
const maxSorted = 2000;
/** Lines that are looked at in a slice, and characters of a page of them. */
const [linesPerSlice, maxPageLength] = [100, 4 << 20];
const maxSpans = 500;

/** What a loop is asked for before anybody has asked. */
export const noControls: StudioControls = { version: 0, stop: false, values: {} };

/** What the studio shows of runs, and what can be changed about them without touching training. */
export class Studio {
  readonly rows: RunRows;
  readonly #core: Core;
  readonly #folders: LogFolders;

  constructor(core: Core, folders: LogFolders) {
    this.#core = core;
    this.#folders = folders;
    this.rows = new RunRows(core, folders);
  }

  /** The id of a run by the name that its owner logs it under. */
  idOf(owner: string, name: string): string {
    const { logs } = this.#core.context.store;
    const own = scopedLogId(owner, name);
    return logs.get(own) ? own : name;
  }

  /** A run of this owner. */
  owned(owner: string, id: string): LogRecord {
    const log = this.#core.context.store.logs.get(this.idOf(owner, id));
    if (log?.owner === owner || (log?.source === "folder" && this.#folders.has(id))) return log;
    throw notFound(`run ${id}`);
  }

  /** A page of the list. */
  runs(owner: string, query: RunsQuery): Promise<StudioRuns> {
    return this.#core.context.loop.run(owner, this.#runs(owner, query));
  }

  *#runs(owner: string, query: RunsQuery): Generator<void, StudioRuns, void> {
    const { ids, text, sort, cursor, limit, withArchived } = query;
    const isMeant = runFilter(text);
    const isSorted = sort !== "-updated" || ids !== null;
    const start = cursor === null ? null : readCursor(cursor);
    let key = typeof start === "object" ? start : null;
    if (isSorted && key === null) {
      const logs =
        ids === null ? this.rows.after(owner, null, withArchived) : this.#named(owner, query);
      const meant: StudioRun[] = [];
      let [seen, isMore] = [0, false];
      for (const log of logs) {
        isMore = seen++ === maxSorted;
        if (isMore) break;
        key = log;
        const row = this.rows.row(log);
        if (isMeant(row, () => configOf(log))) meant.push(row);
        yield;
      }
      const from = typeof start === "number" ? start : 0;
      const sign = sort.startsWith("-") ? -1 : 1;
      const sorted = this.#sorted(meant, sort.replace(/^-/, ""), sign);
      const end = from + limit;
      const next = end < sorted.length ? String(end) : isMore && key ? cursorOf(key) : null;
      return { runs: sorted.slice(from, end), cursor: next };
    }
    const page: StudioRun[] = [];
    for (const log of this.rows.after(owner, key, withArchived)) {
      if (page.length === limit) return { runs: page, cursor: cursorOf(key!) };
      key = log;
      const row = this.rows.row(log);
      if (isMeant(row, () => configOf(log))) page.push(row);
      yield;
    }
    return { runs: page, cursor: null };
  }

  /** The runs that are asked for by their ids, as far as lists show them. */
  *#named(owner: string, { ids, withArchived }: RunsQuery): Generator<LogRecord, void> {
    const { logs } = this.#core.context.store;
    for (const id of ids ?? []) {
      const log = logs.get(this.idOf(owner, id));
      if (!log || (log.owner !== owner && log.source !== "folder")) continue;
      const isListed = this.rows.isShown(log) && logs.logOfModel(log.logId) === undefined;
      if (isListed && (withArchived || log.archivedAt === null)) yield log;
    }
  }

  async detail(owner: string, id: string): Promise<StudioRunDetail> {
    const { store, recorder } = this.#core.context;
    const log = this.owned(owner, id);
    // A step that is shown leads to what it was trained on.
    await recorder.exhibits.settled();
    await this.whenMoved(log);
    const row = this.rows.row(log);
    const series = this.rows.series(log);
    const ids = [...new Set([id, ...row.models])];
    const isFolder = log.source === "folder";
    const marks = ids
      .flatMap((one) => store.logs.marks(one, maxMarks))
      .toSorted((a, b) => a.at - b.at);
    const own = new Set(log.source === "log" ? store.series.list(id).map(({ key }) => key) : []);
    const checkpoints = await this.#core.context.loop.run(
      owner,
      checkpointRows(this.#core, this.rows, owner, ids),
    );
    const steps = (kind: "datum" | "rollout" | "sample"): number[] => [
      ...new Set(ids.flatMap((one) => store.exhibits.steps(one, kind))),
    ];
    return {
      ...row,
      config: configOf(log) ?? this.#modelConfig(row),
      series: series.keys.map((key) => {
        const attempts = series.attempts(key);
        return {
          key,
          by: log.source === "server" || !isLogged(key, own) ? "server" : "log",
          count: attempts.reduce((sum, { count }) => sum + count, 0),
          lastX: attempts.at(-1)!.lastX,
          summary: summaryOf(key, attempts),
        };
      }),
      marks: marks.map((mark): StudioMark => ({ ...mark, kind: mark.kind as StudioMark["kind"] })),
      checkpoints: checkpoints.toReversed(),
      exhibitSteps: {
        datum: steps("datum"),
        rollout: isFolder ? await this.#folders.steps(id, "rollout") : steps("rollout"),
        sample: isFolder ? await this.#folders.steps(id, "sample") : steps("sample"),
      },
      controls: controlsOf(log),
      hasControls: log.source === "log",
      isPaused: ids.some((one) => store.logs.isPaused(one)),
      files: isFolder ? await this.#folders.files(id) : [],
      folder: log.folder,
      attempts: series.starts,
    };
  }

  /** Curves of some metrics of some runs. */
  async series(
    owner: string,
    runs: readonly string[],
    keys: readonly string[],
    query: SeriesQuery,
  ): Promise<StudioSeries[]> {
    const all: StudioSeries[] = [];
    for (const run of runs) {
      const log = this.owned(owner, run);
      await this.whenMoved(log);
      const reader = new SeriesReader(this.#core.context.store.series, this.rows.series(log));
      for (const key of keys) {
        all.push(...(await this.#core.context.loop.run(owner, reader.read(run, key, query))));
      }
    }
    return all;
  }

  /** Lines of text. A search looks at all lines of a run, in slices. */
  log(owner: string, id: string, filter: LineFilter): Promise<StudioLog> {
    return this.#core.context.loop.run(owner, this.#log(this.owned(owner, id).logId, filter));
  }

  *#log(logId: string, filter: LineFilter): Generator<void, StudioLog, void> {
    const { lines: table } = this.#core.context.store;
    const { limit, level, text } = filter;
    let { after, before } = filter;
    const isAscending = after !== null;
    const wanted = text.toLowerCase();
    const lines: TextLine[] = [];
    let length = 0;
    for (let isMore = true; isMore && lines.length < limit && length < maxPageLength;) {
      const read = table.page(logId, { after, before }, linesPerSlice);
      for (const line of read) {
        const isLevel = level === null || line.level === level || line.level === "error";
        if (!isLevel || !line.text.toLowerCase().includes(wanted)) continue;
        if (lines.length === limit) break;
        lines.push(line);
        length += line.text.length;
      }
      isMore = read.length === linesPerSlice;
      if (isAscending) after = read.at(-1)?.n ?? after;
      else before = read.at(-1)?.n ?? before;
      yield;
    }
    return {
      lines: (isAscending ? lines : lines.toReversed()).map((line) => ({
        ...line,
        level: line.level as "info",
      })),
      next: table.next(logId),
    };
  }

  spans(owner: string, id: string, from: number, to: number): StudioSpans {
    this.owned(owner, id);
    const rows = this.#core.context.store.logs.spans(id, from, to, maxSpans);
    return {
      steps: rows.map(({ step, spans }) => ({
        step,
        spans: JSON.parse(spans) as StudioSpans["steps"][number]["spans"],
      })),
    };
  }

  async label(owner: string, id: string, label: StudioLabel): Promise<StudioRun> {
    const { store, clock, recorder } = this.#core.context;
    const { source } = this.owned(owner, id);
    if (source === "folder") {
      throw conflict("what is shown of a folder is what its files say; rename the folder itself");
    }
    const { name, group, tags, isPinned, isArchived } = label;
    if (name !== undefined && (name.trim() === "" || name.length > 200)) {
      throw badRequest("name", "must have 1 to 200 characters");
    }
    if (
      tags &&
      (tags.length > 50 || tags.some((tag) => typeof tag !== "string" || tag.length > 100))
    ) {
      throw badRequest("tags", "at most 50 of at most 100 characters");
    }
    await store.write(() =>
      store.logs.change(id, {
        ...(name === undefined ? {} : { name }),
        ...(group === undefined ? {} : { group }),
        ...(tags === undefined ? {} : { tags }),
        ...(isPinned === undefined ? {} : { isPinned }),
        ...(isArchived === undefined ? {} : { archivedAt: isArchived ? clock.now() : null }),
      }),
    );
    recorder.hub.noteChange(owner, id);
    return this.rows.row(this.owned(owner, id));
  }

  views(owner: string): StudioViews {
    const views = this.#core.context.store.logs.views(owner);
    return { views: views.map(({ viewId, name, query }) => ({ id: viewId, name, query })) };
  }

  async addView(owner: string, name: string, query: string): Promise<StudioView> {
    const { store } = this.#core.context;
    if (name.trim() === "" || name.length > 200) throw badRequest("name", "1 to 200 characters");
    if (!query.startsWith("/studio") || query.length > 4000) {
      throw badRequest("query", "must be an address within the studio of at most 4000 characters");
    }
    const viewId = randomBytes(9).toString("base64url");
    await store.write(() => store.logs.addView(owner, { viewId, name, query }));
    return { id: viewId, name, query };
  }

  async removeView(owner: string, viewId: string): Promise<void> {
    const { store } = this.#core.context;
    const wasThere = await store.write(() => store.logs.removeView(owner, viewId));
    if (!wasThere) throw notFound(`view ${viewId}`);
  }

  /** Waits until points of an older version of the server are where they are read. */
  async whenMoved(log: LogRecord): Promise<void> {
    for (const id of [log.logId, ...this.rows.row(log).models]) {
      await this.#core.context.recorder.whenMoved(id);
    }
  }

  #sorted(rows: readonly StudioRun[], field: string, sign: number): StudioRun[] {
    const valued = rows.map((row) => ({ row, value: sortValue(row, field) }));
    const isNone = (value: number | string): boolean => Number.isNaN(value);
    return valued
      .toSorted((a, b) => {
        const pinned = Number(b.row.isPinned) - Number(a.row.isPinned);
        // What has no value comes last, whichever way.
        const none = Number(isNone(a.value)) - Number(isNone(b.value));
        if (pinned !== 0 || none !== 0) return pinned || none;
        return sign * (a.value < b.value ? -1 : a.value > b.value ? 1 : 0);
      })
      .map(({ row }) => row);
  }

  #modelConfig(row: StudioRun): unknown {
    const model = this.#core.context.store.models.get(row.models[0] ?? "");
    if (!model) return {};
    const session = this.#core.context.store.sessions.get(model.sessionId);
    return {
      base_model: model.baseModel,
      lora: model.lora,
      ...(model.devices?.length ? { devices: model.devices } : {}),
      ...(model.userMetadata ? { user_metadata: model.userMetadata } : {}),
      ...(session ? { session: { tags: session.tags, sdk_version: session.sdkVersion } } : {}),
    };
  }
}

function cursorOf({ isPinned, updatedAt, logId }: LogKey): string {
  return `${Number(isPinned)}.${updatedAt}.${logId}`;
}

/** A key, or a place in an order of its own. */
function readCursor(cursor: string): LogKey | number {
  if (/^\d+$/.test(cursor)) return Number(cursor);
  const [, isPinned, updatedAt, logId] = /^([01])\.(\d+)\.(.+)$/.exec(cursor) ?? [];
  if (logId === undefined) throw badRequest("cursor", "is not one of ours");
  return { isPinned: isPinned === "1", updatedAt: Number(updatedAt), logId };
}

/** What a run was configured with. */
export function configOf({ config }: LogRecord): unknown {
  return config === null ? undefined : (JSON.parse(config) as unknown);
}

/** What a loop is asked for. */
export function controlsOf({ controls }: LogRecord): StudioControls {
  return controls === null ? noControls : (JSON.parse(controls) as StudioControls);
}

function isLogged(key: string, own: ReadonlySet<string>): boolean {
  return own.has(key) || !/^(server\/|forward\/|nll$)|:(sum|min|max|mean)$/.test(key);
}
