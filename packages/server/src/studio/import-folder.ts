import path from "node:path";
import type { Stats } from "node:fs";
import type { Core } from "../core.js";
import { everyone } from "../store/logs-table.js";
import { toNumber } from "../store/sql.js";
import { codeChanges } from "./code-changes.js";
import type { FoundFile, RunFiles } from "./folder-files.js";
import { LineFile, metricsOf, parseLine, type JsonLine } from "./line-file.js";
import type { LogIntake } from "./log-intake.js";
import type { Fields, Line } from "./log-lines.js";
import { kindOf } from "./run-batch.js";

/** Lines that are imported at a time. */
const maxLines = 4000;
const maxDiffBytes = 1 << 20;

/** Files of lines, and what a logger would have sent in place of each; undefined for a line that is broken. */
const lineFiles: Readonly<Record<string, (text: string, stats: Stats) => Fields | undefined>> = {
  "metrics.jsonl": (text) => {
    const line = parseLine(text);
    if (!line) return undefined;
    const { step, _time: time, _attempt: attempt } = line;
    return { kind: "metrics", step, time, attempt, metrics: metricsOf(line) };
  },
  "checkpoints.jsonl": (text, { mtimeMs }) => {
    const row = parseLine(text);
    return (
      row && {
        kind: "checkpoint",
        name: String(row["name"]),
        step: toNumber(row["batch"]) ?? 0,
        time: mtimeMs / 1000,
        sampler: row["sampler_path"],
        state: row["state_path"],
        isFinal: row["final"] === true,
      }
    );
  },
  "timing_spans.jsonl": (text) => {
    const row = parseLine(text);
    const spans = Array.isArray(row?.["spans"]) ? (row["spans"] as JsonLine[]) : [];
    const read = spans.map(({ name, wall_start: start, wall_end: end }) => ({ name, start, end }));
    return row && { kind: "span", step: row["step"], spans: read };
  },
  "logs.log": (text) => ({ kind: "text", text, level: levelOf(text) }),
};

/** Imports one folder of a run: its lines go through the log intake, as if a logger had sent them. */
export class FolderImport {
  readonly files: RunFiles;
  readonly #core: Core;
  readonly #intake: LogIntake;
  readonly #id: string;
  readonly #isEvaluation: boolean;
  readonly #readers = new Map<string, { readonly inode: number; readonly file: LineFile }>();
  #head = "";
  #results = "";

  constructor(
    files: RunFiles,
    parts: {
      readonly core: Core;
      readonly intake: LogIntake;
      readonly id: string;
      readonly isEvaluation: boolean;
    },
  ) {
    this.files = files;
    this.#core = parts.core;
    this.#intake = parts.intake;
    this.#id = parts.id;
    this.#isEvaluation = parts.isEvaluation;
  }

  /** Imports name, configuration and times; false where the folder is no run. */
  async importHead(): Promise<boolean> {
    const configName = this.#isEvaluation ? "metadata.json" : "config.json";
    const names = [configName, "metrics.jsonl", "code.diff", "checkpoints.jsonl", "logs.log"];
    const stats = await Promise.all(names.map((name) => this.#find(name)));
    const [config, metrics] = stats;
    if (!config && (this.#isEvaluation || !metrics)) return false;
    const head = JSON.stringify(stats.map((one) => one?.stamp));
    if (head === this.#head) return true;
    const values = await this.#config(configName);
    const { store, recorder } = this.#core.context;
    const logId = this.#id;
    const times = stats.flatMap((one) => (one ? [one.stats] : []));
    const createdAt = Math.round(Math.min(...times.map(({ birthtimeMs }) => birthtimeMs)));
    await store.write(() => {
      if (!store.logs.get(logId)) {
        store.logs.insert({ logId, owner: everyone, source: "folder", createdAt });
      }
      store.logs.change(logId, {
        name: path.basename(this.files.folder),
        folder: this.files.folder,
        config: values === undefined ? null : JSON.stringify(values),
        kind: kindOf(values),
        updatedAt: Math.round(Math.max(...times.map(({ mtimeMs }) => mtimeMs))),
        ...(hasScores(values) ? { status: "completed" } : {}),
      });
    });
    this.#head = head;
    recorder.hub.noteChange(everyone, logId, "exhibit");
    return true;
  }

  /** Imports new lines, some at a time; true where there may be more. */
  async importLines(): Promise<boolean> {
    if (this.#isEvaluation) await this.#importResults();
    let isMore = false;
    for (const [name, toFields] of Object.entries(lineFiles)) {
      const match = await this.#find(name);
      if (!match) continue;
      const { stats } = match;
      const reader = await this.#reader(name, match);
      const writer = `${name}.${stats.ino}`;
      const { logs } = this.#core.context.store;
      const after = logs.writer(this.#id, writer)?.lastN ?? 0;
      const lines = await reader.read(maxLines, after);
      isMore ||= lines.length >= maxLines;
      await this.#store(
        writer,
        lines.map(({ n, text }) => ({
          n,
          fields: text === null ? undefined : toFields(text, stats),
        })),
      );
    }
    return isMore;
  }

  /** The results of an evaluation: `BENCHMARK/score`, `BENCHMARK/num_correct` and the rest of each `result.json`. */
  async #importResults(): Promise<void> {
    const found: [string, string][] = [];
    for (const name of await this.files.names()) {
      const file = await this.files.find(`${name}/result.json`).catch(() => undefined);
      if (file) found.push([name, file.stamp]);
    }
    const stamp = JSON.stringify(found);
    if (stamp === this.#results) return;
    const metrics: Record<string, unknown> = {};
    for (const [benchmark] of found) {
      const result = (await this.files.json(`${benchmark}/result.json`)) ?? {};
      for (const part of [result, (result["metrics"] ?? {}) as JsonLine]) {
        for (const [key, value] of Object.entries(part)) metrics[`${benchmark}/${key}`] = value;
      }
    }
    const n = (this.#core.context.store.logs.writer(this.#id, "results")?.lastN ?? 0) + 1;
    await this.#store("results", [{ n, fields: { kind: "metrics", step: 0, metrics } }]);
    this.#results = stamp;
  }

  async #store(
    writer: string,
    lines: readonly { readonly n: number; readonly fields: Fields | undefined }[],
  ): Promise<void> {
    const all = lines.map(({ n, fields }): Line => {
      const kind = fields === undefined ? "broken" : (fields["kind"] as string);
      return { number: n, run: this.#id, writer, n, kind, fields: fields ?? {} };
    });
    if (all.length > 0) await this.#intake.importLines(all);
  }

  /** The reader of a file; a run with another file of the same name is imported anew. */
  async #reader(name: string, { place, stats: { ino, size } }: FoundFile): Promise<LineFile> {
    const known = this.#readers.get(name);
    if (known && known.inode === ino && known.file.nextByte <= size) return known.file;
    const { store, recorder } = this.#core.context;
    const isOther = store.logs
      .writers(this.#id)
      .some((writer) => writer.startsWith(`${name}.`) && writer !== `${name}.${ino}`);
    if (known || isOther) {
      await store.write(() => void recorder.remove(this.#id));
      this.#readers.clear();
      this.#head = "";
      await this.importHead();
    }
    const file = new LineFile(place);
    this.#readers.set(name, { inode: ino, file });
    return file;
  }

  /** The configuration of a run, with the changes to its code. */
  async #config(name: string): Promise<JsonLine | undefined> {
    const config = await this.files.json(name);
    const changes = codeChanges((await this.files.text("code.diff", maxDiffBytes)) ?? "");
    return Object.keys(changes).length > 0 ? { ...config, "code.diff": changes } : config;
  }

  #find(name: string): Promise<FoundFile | undefined> {
    return this.files.find(name).catch(() => undefined);
  }
}

/** An evaluation has its scores when it is done. */
function hasScores(config: unknown): boolean {
  const scores = (config as { scores?: unknown } | undefined)?.scores;
  return typeof scores === "object" && scores !== null && Object.keys(scores).length > 0;
}

function levelOf(line: string): "info" | "warning" | "error" {
  const level = /\[(\w+)\]/.exec(line)?.[1]?.toUpperCase();
  if (level === "ERROR" || level === "CRITICAL") return "error";
  return level === "WARNING" || level === "WARN" ? "warning" : "info";
}
