import { logsPath, type LogsAnswer } from "tinker-ts/wire";
import { credentialOf, type Authenticator } from "../auth/authenticator.js";
import type { Core } from "../core.js";
import { checkJsonParts } from "../decoding/json-parts.js";
import { ApiError, badRequest, notFound } from "../errors/api-error.js";
import type { ExtraPage } from "../http/app.js";
import { jsonResponse } from "../http/answers.js";
import type { OpenBody } from "../http/read-body.js";
import { chooseExhibits } from "../recording/choose-exhibits.js";
import type { PreparedExhibits } from "../recording/data-exhibits.js";
import type { ExhibitContent, ExhibitHead } from "../recording/exhibit-content.js";
import { toNumber, toPlain } from "../recording/numbers.js";
import type { LogChange, LogRecord } from "../store/logs-table.js";
import type { Plain } from "../store/points-table.js";
import type { Store } from "../store/store.js";
import { inTurns } from "./in-turns.js";
import { LoggedSteps } from "./logged-steps.js";
import { kindOf } from "./run-kind.js";
import { controlsOf } from "./studio.js";

type Fields = Readonly<Record<string, unknown>>;

/** A line that has been looked at. */
interface Line {
  readonly number: number;
  readonly run: string;
  readonly writer: string;
  readonly n: number;
  readonly kind: string;
  readonly fields: Fields;
}

/** Lines of one transaction, by run, and the place of the line behind them. */
interface TakenLines {
  readonly runs: ReadonlyMap<string, ToldRun>;
  readonly end: number;
}

const idForm = /^[\w.-]{1,100}$/;
const maxLines = 10_000;
/** Longest time that a transaction takes lines before it commits. */
const partMs = 8;
const maxMetrics = 2000;
/** Metrics that an attempt may have; each is a series of its own. */
const maxKeys = 10_000;
// What a column of text cannot hold: NUL, and halves of characters.
const keyForm = /^[^\0\p{Cs}]{1,300}$/u;
/** Times that a date can be made of. */
const lastTimeMs = 8.64e15;
const kinds = new Set([
  "open",
  "watch",
  "metrics",
  "rollouts",
  "examples",
  "checkpoint",
  "span",
  "text",
  "close",
]);

/** Takes what loggers tell: `POST /api/v1/logs`. */
export function logsPage(core: Core, authenticator: Authenticator, openBody: OpenBody): ExtraPage {
  const intake = new LogIntake(core);
  return {
    method: "POST",
    path: logsPath,
    name: "logs",
    async answer(request) {
      const caller = authenticator.identify(credentialOf(request.headers));
      if (!caller) throw new ApiError(401, "put a valid key into the header X-API-Key");
      const { bytes, release } = await openBody(request, caller.owner);
      try {
        return jsonResponse(await intake.take(caller.owner, Buffer.from(bytes).toString()));
      } finally {
        release();
      }
    },
  };
}

/** A run while a batch tells of it: read once, written once. */
class ToldRun {
  readonly #store: Store;
  readonly #writers = new Map<string, { lastN: number; attempt: number }>();
  readonly #told = new Set<string>();
  #log: LogRecord;
  #change: LogChange = {};

  constructor(store: Store, log: LogRecord) {
    this.#store = store;
    this.#log = log;
  }

  /** The run as it is after what was told so far. */
  get log(): LogRecord {
    return this.#log;
  }

  set(change: LogChange): void {
    Object.assign(this.#change, change);
    this.#log = { ...this.#log, ...change };
  }

  writer(name: string): { lastN: number; attempt: number } | undefined {
    const known = this.#writers.get(name) ?? this.#store.logs.writer(this.#log.logId, name);
    if (known) this.#writers.set(name, known);
    return known;
  }

  setWriter(name: string, lastN: number, attempt: number): void {
    this.#writers.set(name, { lastN, attempt });
    this.#told.add(name);
  }

  /** The last line of each writer that is known. */
  get stored(): Record<string, number> {
    return Object.fromEntries([...this.#writers].map(([name, { lastN }]) => [name, lastN]));
  }

  write(): void {
    const { logs } = this.#store;
    logs.change(this.#log.logId, this.#change);
    for (const name of this.#told) {
      const { lastN, attempt } = this.#writers.get(name)!;
      logs.setWriter(this.#log.logId, name, lastN, attempt);
    }
  }
}

/**
 * What loggers tell of their runs.
 *
 * - A batch is stored in parts, so that a long one does not keep others waiting, and those of an owner one
 *   after the other. A bad line refuses it by number; where parts before it are stored, the refusal says so.
 * - A line that was stored before is only counted: loggers send again what they are not sure of.
 * - Every writer has its own attempt: one that is late adds to what others have replaced.
 * - Every answer brings what people have asked for, so that nobody has to poll.
 */
export class LogIntake {
  readonly #core: Core;
  readonly #steps: LoggedSteps;
  /** The last batch of each owner that is being taken. */
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(core: Core) {
    this.#core = core;
    this.#steps = new LoggedSteps(core.context.store);
  }

  async take(owner: string, text: string): Promise<LogsAnswer> {
    const before = this.#underWay.get(owner);
    const taking = (async () => {
      await before?.catch(() => {});
      return this.#take(owner, await inTurns(readLines(text)));
    })();
    this.#underWay.set(owner, taking);
    try {
      const answer = await taking;
      // Whoever is told that a line is stored may forget it.
      await this.#core.context.recorder.exhibits.settled();
      return answer;
    } finally {
      if (this.#underWay.get(owner) === taking) this.#underWay.delete(owner);
    }
  }

  async #take(owner: string, lines: readonly Line[]): Promise<LogsAnswer> {
    const { store, recorder } = this.#core.context;
    const told = new Map<
      string,
      { stored: Record<string, number>; controls: ReturnType<typeof controlsOf> }
    >();
    const forget = (): void => {
      for (const { run } of lines) this.#steps.forget(run);
    };
    let next = 0;
    do {
      const first = next;
      const after: (() => void)[] = [];
      // What is known of the steps follows the transaction: the next one may come before this call goes on.
      const write = (): TakenLines => {
        try {
          return this.#takeLines(owner, lines, first, after);
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
        recorder.noteChange(owner, name);
        const stored = { ...told.get(name)?.stored, ...run.stored };
        told.set(name, { stored, controls: controlsOf(run.log) });
      }
      next = end;
    } while (next < lines.length);
    return {
      stored: Object.fromEntries([...told].map(([name, { stored }]) => [name, stored])),
      controls: Object.fromEntries([...told].map(([name, { controls }]) => [name, controls])),
    };
  }

  /** Takes lines from `first` on, as many as there is time for in one transaction. */
  #takeLines(
    owner: string,
    lines: readonly Line[],
    first: number,
    after: (() => void)[],
  ): TakenLines {
    const { store, clock } = this.#core.context;
    const runs = new Map<string, ToldRun>();
    const deadline = performance.now() + partMs;
    let end = first;
    for (; end < lines.length; end++) {
      if (end > first && performance.now() > deadline) break;
      const line = lines[end]!;
      const { writer, n, kind } = line;
      const isNew = !runs.has(line.run) && !store.logs.get(line.run);
      if (isNew) {
        if (kind !== "open") throw notOpened(line);
        store.logs.insert({ logId: line.run, owner, source: "log", createdAt: clock.now() });
      }
      const run = runs.get(line.run) ?? new ToldRun(store, store.logs.get(line.run)!);
      runs.set(line.run, run);
      if (run.log.owner !== owner || run.log.source !== "log") throw notFound(`run ${line.run}`);
      const known = run.writer(writer);
      if (known && n <= known.lastN) continue;
      run.set({ updatedAt: clock.now() });
      if (kind === "open") {
        this.#open(owner, run, line, isNew, after);
        run.setWriter(writer, n, run.log.attempt);
      } else {
        if (!known) throw notOpened(line);
        run.setWriter(writer, n, this.#store(owner, run, line, known.attempt, after));
      }
    }
    for (const run of runs.values()) run.write();
    return { runs, end };
  }

  #open(
    owner: string,
    run: ToldRun,
    { run: logId, fields }: Line,
    isNew: boolean,
    after: (() => void)[],
  ): void {
    const { store, clock, recorder } = this.#core.context;
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
    const mark = { x, at: now, kind: "attempt", text: `attempt ${attempt} began`, subject: null };
    store.logs.addMark(logId, mark);
    after.push(() =>
      recorder.hub.publish(owner, `run:${logId}`, {
        kind: "mark",
        run: logId,
        mark: { ...mark, kind: "attempt" },
      }),
    );
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

  /** Stores a line that belongs to an attempt; tells to which attempt those after it do. */
  #store(owner: string, run: ToldRun, line: Line, attempt: number, after: (() => void)[]): number {
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
        const exhibits = this.#exhibits(line);
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
        // The server has its own mark where the checkpoint is here.
        if (subject !== null && store.logs.savedMark(subject)) break;
        const text = `checkpoint ${name} saved`;
        store.logs.addMark(logId, { x, at: now, kind: "checkpoint", text, subject });
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
        this.#text(owner, line, now, after);
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
    run: ToldRun,
    line: Line,
    attempt: number,
    after: (() => void)[],
  ): number {
    const { clock, recorder } = this.#core.context;
    const { run: logId, fields } = line;
    const values = valuesOf(line);
    const keys = Object.keys(values);
    const before = this.#steps.of(logId, attempt);
    const x = finiteOf(fields["step"]) ?? before.step;
    const isBack = keys.some((key) => (before.keys.get(key) ?? x) > x);
    const own = isBack ? run.log.attempt + 1 : attempt;
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
      at: timeOf(fields) ?? clock.now(),
      kind: "log",
      values,
    } as const;
    after.push(recorder.addLogged(owner, logId, row));
    return own;
  }

  #text(owner: string, line: Line, now: number, after: (() => void)[]): void {
    const { store, recorder } = this.#core.context;
    const { run: logId, fields } = line;
    const level =
      fields["level"] === "error" || fields["level"] === "warning" ? fields["level"] : "info";
    const at = timeOf(fields) ?? now;
    // A program may print anything; a column takes no NUL.
    const text = textOf(line, "text").slice(0, 20_000).replaceAll("\0", "\\0");
    const n = store.logs.addLine(logId, { at, level, text });
    after.push(() => {
      const event = { kind: "log", run: logId, lines: [{ n, at, level, text }] } as const;
      recorder.hub.publish(owner, `run:${logId}`, event);
    });
  }

  #exhibits(line: Line): PreparedExhibits | null {
    const { recorder } = this.#core.context;
    if (recorder.capture === "off") return null;
    const given = line.fields[line.kind];
    if (!Array.isArray(given) || given.some((one) => typeof one !== "object" || one === null)) {
      throw lineError(line, line.kind, "must be a list of objects");
    }
    const all = (given as Fields[]).map((one) => toExhibit(one));
    const seed = `${line.run}:${String(line.fields["step"])}`;
    const kept =
      recorder.capture === "all"
        ? all.map((_, index) => index)
        : chooseExhibits(
            all.map(({ head: { nll, reward, advantage } }) => ({
              nll: toNumber(nll) ?? null,
              reward: toNumber(reward) ?? null,
              advantage: toNumber(advantage) ?? null,
            })),
            seed,
          );
    return {
      heads: kept.map((index) => all[index]!.head),
      contents: kept.map((index) => all[index]!.content),
      seen: all.length,
    };
  }
}

/** The numbers of a line, by metric; what is no number stays in the logger's own files. */
function valuesOf(line: Line): Record<string, Plain> {
  const { metrics } = line.fields;
  if (typeof metrics !== "object" || metrics === null || Array.isArray(metrics)) {
    throw lineError(line, "metrics", "must be an object of numbers");
  }
  const entries = Object.entries(metrics);
  if (entries.length > maxMetrics) {
    throw lineError(line, "metrics", `at most ${maxMetrics} in a line, got ${entries.length}`);
  }
  const bad = entries.find(([key]) => !keyForm.test(key))?.[0];
  if (bad !== undefined) {
    const name = JSON.stringify(bad.slice(0, 40));
    throw lineError(line, "metrics", `the name ${name} must have 1 to 300 whole characters`);
  }
  // From entries, because a key may be called __proto__.
  return Object.fromEntries(
    entries.flatMap(([key, given]): [string, Plain][] => {
      const value = typeof given === "boolean" ? Number(given) : toNumber(given);
      return value === undefined ? [] : [[key, toPlain(value)]];
    }),
  );
}

/** When something was, in milliseconds; undefined where it does not say, or says what cannot be. */
function timeOf({ time }: Fields): number | undefined {
  const ms = Math.round((toNumber(time) ?? Number.NaN) * 1000);
  return Math.abs(ms) <= lastTimeMs ? ms : undefined;
}

const exhibitKinds = { rollouts: "rollout", examples: "datum" } as const;

function toExhibit(one: Fields): { head: ExhibitHead; content: ExhibitContent } {
  const tokens = numbersOf(one["tokens"]) ?? [];
  const sized = (name: string): number[] | undefined => {
    const values = numbersOf(one[name]);
    return values && values.length === tokens.length ? values : undefined;
  };
  const mask = sized("mask");
  const weights = sized("weights");
  const logprobs = sized("logprobs");
  const isTrained = (place: number): boolean =>
    weights ? weights[place] !== 0 : mask ? mask[place] !== 0 : place > 0;
  const trained = tokens.map((_, place) => place).filter(isTrained);
  const sum = logprobs && trained.reduce((total, place) => total + logprobs[place]!, 0);
  const advantage = toNumber(one["advantage"]);
  const advantages =
    sized("advantages") ??
    (advantage === undefined
      ? undefined
      : tokens.map((_, place) => (isTrained(place) ? advantage : 0)));
  const { text, messages, metrics, logs, model, stop } = one;
  const reward = toNumber(one["reward"]);
  return {
    head: {
      group: toNumber(one["group"]) ?? null,
      index: toNumber(one["index"]) ?? 0,
      reward: reward === undefined ? null : toPlain(reward),
      advantage: advantage === undefined ? null : toPlain(advantage),
      nll: sum === undefined || trained.length === 0 ? null : toPlain(-sum / trained.length),
      tokenCount: tokens.length,
      trainedCount: trained.length,
      stopReason: typeof stop === "string" ? stop : null,
    },
    content: {
      columns: {
        tokens,
        weight: weights,
        mask,
        ...(weights ? { logprob: logprobs } : { samplerLogprob: logprobs }),
        advantage: advantages,
        entropy: sized("entropies"),
      },
      extra: { text, messages, metrics, logs, model },
    },
  };
}

/** Reads lines, with a pause behind each. */
function* readLines(text: string): Generator<void, Line[], void> {
  const rows = text.split("\n");
  const lines: Line[] = [];
  for (const [index, row] of rows.entries()) {
    if (row.trim() === "") continue;
    checkJsonParts(row);
    const number = index + 1;
    let fields: unknown;
    try {
      fields = JSON.parse(row);
    } catch {
      throw badRequest(`line ${number}`, "is not JSON");
    }
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      throw badRequest(`line ${number}`, "must be a JSON object");
    }
    const { run, writer, n, kind } = fields as Fields;
    const line = { number, run, writer, n, kind, fields } as Line;
    if (typeof run !== "string" || !idForm.test(run)) {
      throw lineError(line, "run", "must have 1 to 100 letters, digits, dots, dashes");
    }
    if (typeof writer !== "string" || !idForm.test(writer)) {
      throw lineError(line, "writer", "must have 1 to 100 letters, digits, dots, dashes");
    }
    if (!Number.isSafeInteger(n) || (n as number) < 1) {
      throw lineError(line, "n", "must be the count of the line, from 1");
    }
    if (typeof kind !== "string" || !kinds.has(kind)) {
      throw lineError(line, "kind", `must be one of ${[...kinds].join(", ")}`);
    }
    lines.push(line);
    yield;
  }
  if (lines.length > maxLines) throw badRequest("body", `at most ${maxLines} lines at a time`);
  return lines;
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

function lineError({ number }: Pick<Line, "number">, field: string, problem: string): ApiError {
  return badRequest(`line ${number}`, `${field}: ${problem}`);
}

function textOf(line: Line, field: string): string {
  const value = line.fields[field];
  if (typeof value === "string") return value;
  throw lineError(line, field, "must be text");
}

function numberOf(line: Line, field: string): number {
  const value = finiteOf(line.fields[field]);
  if (value !== undefined) return value;
  throw lineError(line, field, "must be a finite number");
}

/** A number that a column can hold; JSON may say 1e999. */
function finiteOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function numbersOf(value: unknown): number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.map((one) => toNumber(one) ?? Number.NaN);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isStatus(status: unknown): status is string {
  return status === "completed" || status === "failed" || status === "stopped";
}
