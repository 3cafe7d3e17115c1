import { logsPath, type LogsAnswer, type StudioControls } from "tinker-ts/wire";
import { credentialOf, type Authenticator } from "../auth/authenticator.js";
import type { Core } from "../core.js";
import { ApiError, badRequest, notFound } from "../errors/api-error.js";
import type { ExtraPage } from "../http/app.js";
import { jsonResponse } from "../http/answers.js";
import { chooseExhibits } from "../recording/choose-exhibits.js";
import type { PreparedExhibits } from "../recording/data-exhibits.js";
import type { ExhibitContent, ExhibitHead } from "../recording/exhibit-content.js";
import { toNumber, toPlain } from "../recording/numbers.js";
import type { Plain } from "../store/points-table.js";
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

const idForm = /^[\w.-]{1,100}$/;
const maxLines = 10_000;
const maxMetrics = 2000;
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
export function logsPage(
  core: Core,
  authenticator: Authenticator,
  readBytes: (request: Request, owner: string) => Promise<Uint8Array>,
): ExtraPage {
  const intake = new LogIntake(core);
  return {
    method: "POST",
    path: logsPath,
    name: "logs",
    async answer(request) {
      const caller = authenticator.identify(credentialOf(request.headers));
      if (!caller) throw new ApiError(401, "put a valid key into the header X-API-Key");
      const bytes = await readBytes(request, caller.owner);
      return jsonResponse(await intake.take(caller.owner, Buffer.from(bytes).toString()));
    },
  };
}

/**
 * What loggers tell of their runs.
 *
 * - A batch is stored whole or not at all; a bad line refuses it by number.
 * - A line that was stored before is only counted: loggers send again what they are not sure of.
 * - Every answer brings what people have asked for, so that nobody has to poll.
 */
export class LogIntake {
  readonly #core: Core;
  /** The last x of each key of the attempt that goes on, by run. */
  readonly #lastX = new Map<string, { attempt: number; step: number; keys: Map<string, number> }>();

  constructor(core: Core) {
    this.#core = core;
  }

  async take(owner: string, text: string): Promise<LogsAnswer> {
    const lines = readLines(text);
    const { store, recorder } = this.#core.context;
    const stored = new Map<string, Map<string, number>>();
    const after: (() => void)[] = [];
    await store.write(() => {
      after.length = 0;
      for (const line of lines) {
        const { run, writer, n } = line;
        const log = store.logs.get(run);
        if (log && (log.owner !== owner || log.source !== "log")) throw notFound(`run ${run}`);
        const known = store.logs.writer(run, writer);
        const last = Math.max(known?.lastN ?? 0, n);
        const writers = stored.get(run) ?? new Map<string, number>();
        stored.set(run, writers.set(writer, last));
        if (known && n <= known.lastN) continue;
        if (!known && line.kind !== "open") {
          throw lineError(line, "kind", "the first line of a writer must be of kind open");
        }
        if (line.kind === "open") this.#open(owner, line, after);
        else this.#store(owner, line, known!.attempt, after);
        store.logs.setWriter(run, writer, n, this.#attemptOf(run));
      }
    });
    for (const action of after) action();
    // Whoever is told that a line is stored may forget it.
    await recorder.exhibits.settled();
    for (const run of stored.keys()) recorder.noteChange(owner, run);
    const controls: Record<string, StudioControls> = {};
    for (const run of stored.keys()) {
      const log = store.logs.get(run);
      if (log) controls[run] = controlsOf(log);
    }
    return {
      stored: Object.fromEntries(
        [...stored].map(([run, writers]) => [run, Object.fromEntries(writers)]),
      ),
      controls,
    };
  }

  #attemptOf(run: string): number {
    return this.#core.context.store.logs.get(run)?.attempt ?? 1;
  }

  #open(owner: string, { run: logId, fields }: Line, after: (() => void)[]): void {
    const { store, clock, recorder } = this.#core.context;
    const now = clock.now();
    const before = store.logs.get(logId);
    if (!before) store.logs.insert({ logId, owner, source: "log", createdAt: now });
    const { name, group, tags, config, folder, models } = fields;
    const given = Number(fields["attempt"] ?? 1);
    const attempt = before ? Math.max(before.attempt + 1, given) : Math.max(1, given);
    store.logs.change(logId, {
      updatedAt: now,
      status: null,
      statusReason: null,
      attempt: Number.isInteger(attempt) ? attempt : 1,
      // A request to stop was for the program before.
      controls: JSON.stringify({ ...(before ? controlsOf(before) : noStop), stop: false }),
      ...(typeof name === "string" && !before?.name ? { name: name.slice(0, 200) } : {}),
      ...(typeof group === "string" ? { group: group.slice(0, 200) } : {}),
      ...(isTexts(tags) ? { tags: tags.slice(0, 50).map((tag) => tag.slice(0, 100)) } : {}),
      ...(config === undefined ? {} : { config: JSON.stringify(config), kind: kindOf(config) }),
      ...(typeof folder === "string" ? { folder } : {}),
    });
    this.#lastX.delete(logId);
    for (const model of isTexts(models) ? models : []) this.#watch(owner, logId, model);
    if (!before || attempt === 1) return;
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

  #store(owner: string, line: Line, attempt: number, after: (() => void)[]): void {
    const { store, clock, recorder } = this.#core.context;
    const { run: logId, fields, kind } = line;
    const now = clock.now();
    store.logs.change(logId, { updatedAt: now });
    switch (kind) {
      case "watch":
        this.#watch(owner, logId, textOf(line, "model"));
        return;
      case "metrics":
        this.#metrics(owner, line, attempt, now, after);
        return;
      case "rollouts":
      case "examples": {
        const exhibits = this.#exhibits(line);
        const step = numberOf(line, "step");
        const split = typeof fields["split"] === "string" ? fields["split"].slice(0, 100) : "train";
        const [modelId = null] = store.logs.models(logId);
        const run = { owner, logId, modelId };
        const place = { ...run, step, split, at: now, kind: exhibitKinds[kind] };
        if (exhibits) after.push(() => recorder.exhibits.add(place, () => exhibits));
        return;
      }
      case "checkpoint": {
        const path = [fields["sampler"], fields["state"]].find((one) => typeof one === "string");
        const name = textOf(line, "name");
        const x = toNumber(fields["step"]) ?? store.logs.get(logId)?.steps ?? 0;
        const subject = path ?? null;
        // The server has its own mark where the checkpoint is here.
        if (subject !== null && store.logs.savedMark(subject)) return;
        const text = `checkpoint ${name} saved`;
        store.logs.addMark(logId, { x, at: now, kind: "checkpoint", text, subject });
        return;
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
        return;
      }
      case "text":
        this.#text(owner, line, now, after);
        return;
      case "close": {
        const { status, reason, dropped } = fields;
        store.logs.change(logId, {
          status: isStatus(status) ? status : "completed",
          statusReason: typeof reason === "string" ? reason.slice(0, 2000) : null,
          dropped: toNumber(dropped) ?? 0,
        });
      }
    }
  }

  #metrics(owner: string, line: Line, attempt: number, now: number, after: (() => void)[]): void {
    const { store, recorder } = this.#core.context;
    const { run: logId, fields } = line;
    const { metrics } = fields;
    if (typeof metrics !== "object" || metrics === null) {
      throw lineError(line, "metrics", "must be an object of numbers");
    }
    const entries = Object.entries(metrics).slice(0, maxMetrics);
    // From entries, because a key may be called __proto__.
    const values: Record<string, Plain> = Object.fromEntries(
      entries.flatMap(([key, given]): [string, Plain][] => {
        const value = typeof given === "boolean" ? Number(given) : toNumber(given);
        return value === undefined ? [] : [[key.slice(0, 300), toPlain(value)]];
      }),
    );
    const known = this.#lastX.get(logId) ?? { attempt, step: 0, keys: new Map<string, number>() };
    this.#lastX.set(logId, known);
    const given = toNumber(fields["step"]);
    const x = given !== undefined && Number.isFinite(given) ? given : known.step;
    // A metric that goes back to an earlier step has begun anew, whatever its program says.
    const isBack = Object.keys(values).some((key) => (known.keys.get(key) ?? x) > x);
    if (isBack) {
      known.attempt = this.#attemptOf(logId) + 1;
      known.keys.clear();
      store.logs.change(logId, { attempt: known.attempt });
    } else known.attempt = Math.max(known.attempt, this.#attemptOf(logId));
    known.step = x;
    for (const key of Object.keys(values)) known.keys.set(key, x);
    const time = toNumber(fields["time"]);
    const at = time === undefined || !Number.isFinite(time) ? now : Math.round(time * 1000);
    store.logs.change(logId, { steps: Math.floor(x) + 1 });
    if (Object.keys(values).length === 0) return;
    const row = { attempt: known.attempt, x, at, kind: "log", values } as const;
    after.push(recorder.addLogged(owner, logId, row));
  }

  #text(owner: string, line: Line, now: number, after: (() => void)[]): void {
    const { store, recorder } = this.#core.context;
    const { run: logId, fields } = line;
    const level =
      fields["level"] === "error" || fields["level"] === "warning" ? fields["level"] : "info";
    const time = toNumber(fields["time"]);
    const at = time === undefined ? now : Math.round(time * 1000);
    const text = textOf(line, "text").slice(0, 20_000);
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
    if (!Array.isArray(given)) throw lineError(line, line.kind, "must be a list");
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

const exhibitKinds = { rollouts: "rollout", examples: "datum" } as const;
const noStop: StudioControls = { version: 0, stop: false, values: {} };

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

function readLines(text: string): Line[] {
  const rows = text.split("\n");
  const lines: Line[] = [];
  for (const [index, row] of rows.entries()) {
    if (row.trim() === "") continue;
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
  }
  if (lines.length > maxLines) throw badRequest("body", `at most ${maxLines} lines at a time`);
  return lines;
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
  const value = line.fields[field];
  if (typeof value === "number") return value;
  throw lineError(line, field, "must be a number");
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
