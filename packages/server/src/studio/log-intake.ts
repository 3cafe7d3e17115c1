import { logsPath, type LogsAnswer } from "tinker-ts/wire";
import { credentialOf, type Authenticator } from "../auth/authenticator.js";
import type { Core } from "../core.js";
import { ApiError, notFound } from "../errors/api-error.js";
import type { ExtraPage } from "../http/app.js";
import { jsonResponse } from "../http/answers.js";
import type { OpenJson } from "../http/read-body.js";
import { LruMap } from "../lru-map.js";
import { everyone, type LogSource } from "../store/logs-table.js";
import {
  finiteOf,
  isTexts,
  lineError,
  numberOf,
  readLines,
  scopedLogId,
  textOf,
  timeOf,
  valuesOf,
  type Fields,
  type Line,
} from "./log-lines.js";
import { loggedExhibits } from "./logged-exhibits.js";
import { kindOf, LoggedSteps, RunBatch } from "./run-batch.js";
import { controlsOf } from "./studio.js";

/** Lines of one transaction, by run, and the place of the line behind them. */
interface TakenLines {
  readonly runs: ReadonlyMap<string, RunBatch>;
  readonly end: number;
}

/** Longest time that a transaction takes lines before it commits. */
const partMs = 4;
/** Lines that it takes however long they last, and metrics of these: a short batch is stored whole or not at all. */
const [leastLines, shortValues] = [8, 200];
/** Metrics that an attempt may have; each is a series of its own. */
const maxKeys = 10_000;
const exhibitKinds = { rollouts: "rollout", examples: "datum" } as const;

/** Takes lines of loggers: `POST /api/v1/logs`. */
export function logsPage(
  intake: LogIntake,
  authenticator: Authenticator,
  openJson: OpenJson,
): ExtraPage {
  return {
    method: "POST",
    path: logsPath,
    name: "logs",
    async answer(request) {
      const caller = authenticator.identify(credentialOf(request.headers));
      if (!caller) throw new ApiError(401, "put a valid key into the header X-API-Key");
      const { texts, release } = await openJson(request, caller.owner, "lines");
      try {
        return jsonResponse(await intake.take(caller.owner, texts));
      } finally {
        release();
      }
    },
  };
}

/**
 * The lines that loggers send about their runs.
 *
 * - A long batch is stored in parts, so that it does not keep others waiting, and those of an owner one
 *   after the other. A bad line refuses it by number; where parts before it are stored, the refusal says so.
 * - A line that was stored before is only counted: loggers send again what they are not sure of.
 * - Every writer has its own attempt: one that is late adds to what others have replaced.
 * - Every answer contains the requests of people, so that no logger has to poll.
 */
export class LogIntake {
  readonly #core: Core;
  readonly #steps: LoggedSteps;
  readonly #kept = new LruMap<string, { runs: number; lineBytes: number }>(1000);
  /** The last batch of each owner that is being taken. */
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(core: Core) {
    this.#core = core;
    this.#steps = new LoggedSteps(core.context.store);
  }

  async take(owner: string, texts: readonly string[]): Promise<LogsAnswer> {
    const { loop, store } = this.#core.context;
    const names = new Map<string, string>();
    const answer = await this.#inOrder(owner, async () => {
      const lines = await loop.run(owner, readLines(texts));
      const scoped = lines.map((line) => {
        // Runs of servers before names belonged to owners keep their ids.
        const isOld = store.logs.get(line.run)?.owner === owner;
        const run = isOld ? line.run : scopedLogId(owner, line.run);
        names.set(run, line.run);
        return { ...line, run };
      });
      return this.#take(owner, "log", scoped, names);
    });
    // A client may drop a line once it is acknowledged.
    await this.#core.context.recorder.exhibits.settled();
    return answer;
  }

  /** Stores lines of the files of a folder; a bad one is counted and left out. */
  async importLines(lines: readonly Line[]): Promise<void> {
    await this.#inOrder(everyone, () => this.#take(everyone, "folder", lines));
  }

  /** Batches of an owner are stored one after the other. */
  async #inOrder<T>(owner: string, take: () => Promise<T>): Promise<T> {
    const before = this.#underWay.get(owner);
    const taking = (async () => {
      await before?.catch(() => {});
      return take();
    })();
    this.#underWay.set(owner, taking);
    try {
      return await taking;
    } finally {
      if (this.#underWay.get(owner) === taking) this.#underWay.delete(owner);
    }
  }

  async #take(
    owner: string,
    source: LogSource,
    lines: readonly Line[],
    names: ReadonlyMap<string, string> = new Map(),
  ): Promise<LogsAnswer> {
    const { store, recorder } = this.#core.context;
    const answered = new Map<
      string,
      { stored: Record<string, number>; controls: ReturnType<typeof controlsOf> }
    >();
    const forget = (): void => {
      this.#kept.delete(owner);
      for (const { run } of lines) this.#steps.forget(run);
    };
    let next = 0;
    do {
      const first = next;
      const after: (() => void)[] = [];
      // What is known of the steps follows the transaction: the next one may come before this call goes on.
      const write = (): TakenLines => {
        try {
          return this.#takeLines(owner, source, lines, first, after);
        } catch (error) {
          forget();
          throw error;
        }
      };
      const { runs, end } = await store.write(write).catch((error: unknown) => {
        forget();
        throw first > 0 && error instanceof ApiError ? afterParts(error, lines[first]!) : error;
      });
      for (const action of after) action();
      for (const [name, run] of runs) {
        recorder.hub.noteChange(owner, name);
        const stored = { ...answered.get(name)?.stored, ...run.stored };
        answered.set(name, { stored, controls: controlsOf(run.log) });
      }
      next = end;
    } while (next < lines.length);
    const named = [...answered].map(([run, one]) => [names.get(run) ?? run, one] as const);
    return {
      stored: Object.fromEntries(named.map(([name, { stored }]) => [name, stored])),
      controls: Object.fromEntries(named.map(([name, { controls }]) => [name, controls])),
    };
  }

  /** Takes lines from `first` on, as many as there is time for in one transaction. */
  #takeLines(
    owner: string,
    source: LogSource,
    lines: readonly Line[],
    first: number,
    after: (() => void)[],
  ): TakenLines {
    const { store, clock, limits } = this.#core.context;
    const runs = new Map<string, RunBatch>();
    const deadline = performance.now() + partMs;
    let [end, values] = [first, 0];
    for (; end < lines.length; end++) {
      const isShort = end - first < leastLines && values < shortValues;
      if (!isShort && performance.now() > deadline) break;
      const line = lines[end]!;
      const { writer, n, kind } = line;
      values += Object.keys(line.fields["metrics"] ?? {}).length;
      const isNew = !runs.has(line.run) && !store.logs.get(line.run);
      if (isNew) {
        if (kind !== "open") throw notOpened(line);
        this.#checkRuns(owner, line);
        store.logs.insert({ logId: line.run, owner, source: "log", createdAt: clock.now() });
      }
      const run = runs.get(line.run) ?? new RunBatch(store, store.logs.get(line.run)!);
      runs.set(line.run, run);
      if (run.log.owner !== owner || run.log.source !== source) throw notFound(`run ${line.run}`);
      const known = run.writer(writer);
      if (known && n <= known.lastN) continue;
      if (source === "folder") {
        run.setWriter(writer, n, this.#import(owner, run, line, known?.attempt ?? 1, after));
        continue;
      }
      run.set({ updatedAt: clock.now() });
      if (kind === "open") {
        this.#open(owner, run, line, isNew);
        run.setWriter(writer, n, run.log.attempt);
      } else {
        if (!known) throw notOpened(line);
        run.setWriter(writer, n, this.#store(owner, run, line, known.attempt, after));
      }
    }
    const kept = this.#keptOf(owner);
    for (const run of runs.values()) {
      kept.lineBytes += run.lineBytes;
      run.write();
    }
    if (kept.lineBytes > limits.maxLogLineBytes) kept.lineBytes = store.lines.bytes(owner);
    while (kept.lineBytes > limits.maxLogLineBytes) {
      const trimmed = store.lines.trim(owner, kept.lineBytes - limits.maxLogLineBytes);
      if (trimmed === 0) break;
      kept.lineBytes -= trimmed;
    }
    return { runs, end };
  }

  /** What an owner has; counted once, and again when that is too much. */
  #keptOf(owner: string): { runs: number; lineBytes: number } {
    const { logs, lines } = this.#core.context.store;
    const kept = this.#kept.get(owner) ?? {
      runs: logs.count(owner),
      lineBytes: lines.bytes(owner),
    };
    this.#kept.set(owner, kept);
    return kept;
  }

  #checkRuns(owner: string, line: Line): void {
    const { store, limits } = this.#core.context;
    const most = 2 * limits.maxRuns;
    const kept = this.#keptOf(owner);
    if (kept.runs >= most) kept.runs = store.logs.count(owner);
    if (kept.runs++ < most) return;
    const problem = `you have ${kept.runs} runs, twice maxRuns; unpin old ones, the longest untouched go every 30 s`;
    throw lineError(line, "run", problem);
  }

  /** Stores a line of a file; returns the attempt of the lines after it. */
  #import(
    owner: string,
    run: RunBatch,
    line: Line,
    attempt: number,
    after: (() => void)[],
  ): number {
    try {
      if (line.kind !== "broken") return this.#store(owner, run, line, attempt, after);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
    run.set({ dropped: run.log.dropped + 1 });
    return attempt;
  }

  #open(owner: string, run: RunBatch, { run: logId, fields }: Line, isNew: boolean): void {
    const { store, clock } = this.#core.context;
    const now = clock.now();
    const before = run.log;
    const { name, group, tags, config, folder, models } = fields;
    const given = Number(fields["attempt"] ?? 1);
    const least = isNew ? 1 : before.attempt + 1;
    const attempt = Number.isSafeInteger(given) ? Math.max(least, given) : least;
    run.set({
      status: null,
      statusReason: null,
      attempt,
      // A request to stop was for the program before.
      controls: JSON.stringify({ ...controlsOf(before), stop: false }),
      ...(typeof name === "string" && !before.name ? { name: name.slice(0, 200) } : {}),
      ...(typeof group === "string" ? { group: group.slice(0, 200) } : {}),
      ...(isTexts(tags) ? { tags: tags.slice(0, 50).map((tag) => tag.slice(0, 100)) } : {}),
      ...(config === undefined ? {} : { config: JSON.stringify(config), kind: kindOf(config) }),
      ...(typeof folder === "string" ? { folder } : {}),
    });
    for (const model of isTexts(models) ? models : []) this.#watch(owner, logId, model);
    if (isNew || attempt === 1) return;
    const x = before.steps;
    const text = `attempt ${attempt} began`;
    store.logs.addMark(logId, { x, at: now, kind: "attempt", text, subject: null });
  }

  #watch(owner: string, logId: string, modelId: string): void {
    const { store, clock } = this.#core.context;
    const model = store.models.get(modelId);
    if (model?.owner !== owner) return;
    if (!store.logs.get(modelId)) {
      store.logs.insert({ logId: modelId, owner, source: "server", createdAt: clock.now() });
    }
    store.logs.addModel(logId, modelId);
  }

  /** Stores a line of an attempt; returns the attempt of the lines after it. */
  #store(owner: string, run: RunBatch, line: Line, attempt: number, after: (() => void)[]): number {
    const { store, clock, recorder } = this.#core.context;
    const { run: logId, fields, kind } = line;
    const now = clock.now();
    switch (kind) {
      case "watch":
        this.#watch(owner, logId, textOf(line, "model"));
        break;
      case "metrics":
        return this.#metrics(owner, run, line, attempt, after);
      case "rollouts":
      case "examples": {
        const exhibits = loggedExhibits(line, recorder.capture);
        const step = numberOf(line, "step");
        const split = typeof fields["split"] === "string" ? fields["split"].slice(0, 100) : "train";
        const [modelId = null] = store.logs.models(logId);
        const place = { owner, logId, modelId, step, split, at: now, kind: exhibitKinds[kind] };
        if (exhibits) after.push(() => recorder.exhibits.add(place, () => exhibits));
        break;
      }
      case "checkpoint": {
        const path = [fields["sampler"], fields["state"]].find((one) => typeof one === "string");
        const name = textOf(line, "name");
        const x = finiteOf(fields["step"]) ?? run.log.steps;
        const subject = path ?? null;
        const isFolder = run.log.source === "folder";
        if (isFolder && fields["isFinal"] === true) run.set({ status: "completed" });
        // The server has its own mark where the checkpoint is here.
        if (!isFolder && subject !== null && store.logs.savedMark(subject)) break;
        const text = `checkpoint ${name} saved`;
        const at = timeOf(fields) ?? now;
        store.logs.addMark(logId, { x, at, kind: "checkpoint", text, subject });
        break;
      }
      case "span": {
        const spans = (Array.isArray(fields["spans"]) ? fields["spans"] : []) as Fields[];
        const read = spans
          .slice(0, 2000)
          .flatMap(({ name, start, end }) =>
            typeof name === "string" && typeof start === "number" && typeof end === "number"
              ? { name, startSeconds: start, endSeconds: end }
              : [],
          );
        store.logs.setSpans(logId, numberOf(line, "step"), JSON.stringify(read));
        break;
      }
      case "text":
        this.#text(owner, run, line, after);
        break;
      case "close": {
        const { status, reason, dropped } = fields;
        run.set({ dropped: finiteOf(dropped) ?? 0 });
        // The end of a program that another has replaced is not the end of the run.
        if (attempt < run.log.attempt) break;
        run.set({
          status: isStatus(status) ? status : "completed",
          statusReason: typeof reason === "string" ? reason.slice(0, 2000) : null,
        });
      }
    }
    return attempt;
  }

  #metrics(
    owner: string,
    run: RunBatch,
    line: Line,
    attempt: number,
    after: (() => void)[],
  ): number {
    const { clock, recorder } = this.#core.context;
    const { run: logId, fields } = line;
    const isFolder = run.log.source === "folder";
    const values = valuesOf(line, isFolder);
    const keys = Object.keys(values);
    const begun = isFolder ? Math.max(attempt, finiteOf(fields["attempt"]) ?? 1) : attempt;
    const before = this.#steps.of(logId, begun);
    const x = finiteOf(fields["step"]) ?? before.step;
    const isBack = keys.some((key) => (before.keys.get(key) ?? x) > x);
    const own = isBack ? run.log.attempt + 1 : begun;
    const standing = isBack ? this.#steps.of(logId, own) : before;
    standing.step = x;
    for (const key of keys) standing.keys.set(key, x);
    if (standing.keys.size > maxKeys) {
      throw lineError(line, "metrics", `a run has at most ${maxKeys} different metrics`);
    }
    if (own >= run.log.attempt) run.set({ attempt: own, steps: Math.floor(x) + 1 });
    if (keys.length === 0) return own;
    const row = {
      attempt: own,
      x,
      // Files do not always say when.
      at: timeOf(fields) ?? (isFolder ? null : clock.now()),
      kind: "log",
      values,
    } as const;
    run.series.add(row);
    after.push(() => recorder.hub.noteChange(owner, logId, "series"));
    return own;
  }

  #text(owner: string, run: RunBatch, line: Line, after: (() => void)[]): void {
    const { store, clock, recorder } = this.#core.context;
    const { run: logId, fields } = line;
    const level =
      fields["level"] === "error" || fields["level"] === "warning" ? fields["level"] : "info";
    const at = timeOf(fields) ?? (run.log.source === "folder" ? null : clock.now());
    // A program may print anything; a column takes no NUL.
    const text = textOf(line, "text").slice(0, 20_000).replaceAll("\0", "\\0");
    store.lines.add(logId, { at, level, text });
    run.addLineBytes(text.length);
    after.push(() => recorder.hub.noteChange(owner, logId, "log"));
  }
}

/** A refusal of a batch of which something is stored already. */
function afterParts(error: ApiError, { number }: Line): ApiError {
  const { status, code } = error;
  const message = `${error.message}; the lines before line ${number} are stored`;
  return new ApiError(status, message, { code, cause: error });
}

function notOpened(line: Line): ApiError {
  return lineError(line, "kind", "the first line of a writer must be of kind open");
}

function isStatus(status: unknown): status is string {
  return status === "completed" || status === "failed" || status === "stopped";
}
