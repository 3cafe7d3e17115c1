import { readdir } from "node:fs/promises";
import path from "node:path";
import { ArgumentError } from "../errors/argument-error.js";
import { toCheckpointLine, type CheckpointRow } from "./checkpoint-row.js";
import { FolderWriter } from "./folder-writer.js";
import { toJsonLine, type Line, type LineValue } from "./json-lines.js";
import { readRunFolder, runFiles, type RunFolder } from "./run-folder.js";
import type { Metrics, RunRecord, RunSink, TextLevel } from "./run-record.js";
import type { Span } from "./step-spans.js";

/** How a run is logged. */
export interface RunLogOptions {
  /** The run's folder; it is made when it is not there. */
  readonly folder: string;
  /**
   * What the run was configured with; written to `config.json`, of a run that goes on with the first thing it
   * logs. Functions are named, other things as JSON has them.
   */
  readonly config?: unknown;
  /**
   * What to do when the folder holds a run: go on with it, remove that run's files, or refuse.
   * @default "resume"
   */
  readonly ifExists?: "resume" | "delete" | "fail" | undefined;
  /** Where else the run is told to. */
  readonly sinks?: readonly RunSink[] | undefined;
}

/** Metrics that wait to be written; more than this are dropped and counted. */
const maxWaiting = 4096;
const flushMs = 250;
const iterationFolder = /^iteration_\d{6}$/;

/**
 * The log of a run: a folder of plain files that people, the studio and the Python cookbook's tools read.
 *
 * - `log` returns at once and never throws: lines wait in memory and are written four times a second.
 * - `checkpoint` is what a run goes on from: it resolves when the row, and all that was logged before, is
 *   on the disk, and rejects when it could not be written.
 * - What cannot be written is dropped and counted, told to the sinks, and told again by `close`.
 */
export class RunLog implements AsyncDisposable {
  /** Where the run is written. */
  readonly folder: string;
  /** The run that the folder held when it was opened. */
  readonly previous: RunFolder;
  /** Which start of the program this is, from 1. */
  readonly attempt: number;
  readonly #writer: FolderWriter;
  readonly #sinks: Set<RunSink>;
  #waiting: { readonly name: string; readonly text: string }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #dropped = 0;
  #failure: unknown;
  #isClosed = false;
  /** Waits until the run really goes on: one that is refused must not change what it was. */
  #config: string | undefined;

  private constructor(options: RunLogOptions, previous: RunFolder) {
    this.folder = previous.folder;
    this.previous = previous;
    this.attempt = previous.attempts + 1;
    this.#writer = new FolderWriter(this.folder);
    this.#sinks = new Set(options.sinks);
  }

  /** Opens the folder of a new run, or of one that goes on. */
  static async open(options: RunLogOptions): Promise<RunLog> {
    const { folder, ifExists = "resume" } = options;
    if (typeof folder !== "string" || folder === "") {
      throw new ArgumentError("folder", "must name a folder for the run's files");
    }
    let previous = await readRunFolder(path.resolve(folder));
    if (previous.attempts > 0 && ifExists === "fail") {
      throw new ArgumentError("folder", `${folder} holds a run; go on with it or choose another`);
    }
    if (previous.attempts > 0 && ifExists === "delete") {
      const names = await readdir(previous.folder);
      const iterations = names.filter((name) => iterationFolder.test(name));
      await new FolderWriter(previous.folder).remove([...Object.values(runFiles), ...iterations]);
      previous = await readRunFolder(previous.folder);
    }
    const run = new RunLog(options, previous);
    await run.#start(options.config);
    return run;
  }

  /** Metrics that were dropped because they could not be written in time. */
  get droppedLines(): number {
    return this.#dropped;
  }

  /** Logs values of a step; several calls for one step are read as one. */
  log(metrics: Metrics, { step }: { readonly step?: number | undefined } = {}): void {
    const time = Date.now() / 1000;
    const { attempt } = this;
    this.#writeConfig().catch((error: unknown) => (this.#failure ??= error));
    const line = { step, ...metrics, _time: time, _attempt: attempt };
    this.#enqueue(runFiles.metrics, toJsonLine(line));
    this.#tell({ kind: "metrics", step, metrics, time, attempt });
  }

  /** Logs what took how long in a step. */
  logSpans(step: number, spans: readonly Span[]): void {
    const rows = spans.map(({ name, startSeconds, endSeconds }) => ({
      name,
      duration: endSeconds - startSeconds,
      wall_start: startSeconds,
      wall_end: endSeconds,
    }));
    this.#enqueue(runFiles.spans, toJsonLine({ step, spans: rows }));
    this.#tell({ kind: "spans", step, spans });
  }

  /** Writes a sentence for people to the text log. */
  text(text: string, level: TextLevel = "info"): void {
    this.#enqueue(runFiles.text, `tinker-ts [${level.toUpperCase()}] ${text}\n`);
    this.#tell({ kind: "text", level, text });
  }

  /** Records a checkpoint; it is on the disk when this resolves. */
  async checkpoint(row: CheckpointRow): Promise<void> {
    await this.flush();
    await this.#writeConfig();
    await this.#writer.append(runFiles.checkpoints, toJsonLine(toCheckpointLine(row)), {
      durable: true,
    });
    this.#tell({ kind: "checkpoint", row });
  }

  /** Appends lines to a file of an iteration, such as its rollout summaries. */
  logIteration(iteration: number, fileName: string, lines: readonly Line[]): void {
    const name = path.join(iterationName(iteration), fileName);
    this.#enqueue(name, lines.map(toJsonLine).join(""));
  }

  /** Writes a whole file of an iteration, such as a page that shows it. */
  async writeIteration(iteration: number, fileName: string, text: string): Promise<void> {
    await this.#writer.replace(path.join(iterationName(iteration), fileName), text);
  }

  /** Resolves when everything logged so far is in the files, as far as it could be written. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    const texts = new Map<string, string[]>();
    for (const { name, text } of waiting) texts.set(name, [...(texts.get(name) ?? []), text]);
    const writes = [...texts].map(async ([name, lines]) => {
      try {
        await this.#writer.append(name, lines.join(""));
      } catch (error) {
        this.#dropped += lines.length;
        this.#failure ??= error;
      }
    });
    await Promise.all(writes);
  }

  /** Writes what waits and ends the sinks; throws when something could not be written. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#tell({ kind: "close" });
    this.#isClosed = true;
    await Promise.allSettled([...this.#sinks].map(async (sink) => sink.close?.()));
    await this.flush();
    if (this.#dropped > 0) {
      throw new Error(`${this.#dropped} lines of the run's log could not be written`, {
        cause: this.#failure,
      });
    }
  }

  /** Closes the log at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #start(config: unknown): Promise<void> {
    const plain = toPlain(config);
    if (config !== undefined) this.#config = `${JSON.stringify(plain, null, 2)}\n`;
    if (this.attempt === 1) await this.#writeConfig();
    this.#tell({ kind: "open", folder: this.folder, config: plain });
    for (const problem of this.previous.problems) this.text(problem, "warning");
    this.text(`attempt ${this.attempt}: ${process.argv.slice(1).join(" ")}`);
    await this.flush();
    if (this.#failure) throw this.#failure;
  }

  async #writeConfig(): Promise<void> {
    const config = this.#config;
    this.#config = undefined;
    if (config !== undefined) await this.#writer.replace(runFiles.config, config);
  }

  #enqueue(name: string, text: string): void {
    if (this.#isClosed || this.#waiting.length >= maxWaiting) {
      this.#dropped++;
      return;
    }
    this.#waiting.push({ name, text });
    this.#timer ??= setTimeout(() => void this.flush(), flushMs);
  }

  #tell(record: RunRecord): void {
    for (const sink of this.#sinks) {
      try {
        sink.log(record);
      } catch (error) {
        this.#sinks.delete(sink);
        this.text(`a sink failed and is left out from now on: ${String(error)}`, "warning");
      }
    }
  }
}

/** The name of an evaluator as part of a file's name. */
export function fileNameOf(name: string): string {
  const safe = name.replace(/[^\w.-]/g, "_").replace(/^[._]+|[._]+$/g, "");
  return safe === "" ? "unnamed" : safe;
}

function iterationName(iteration: number): string {
  return `iteration_${String(iteration).padStart(6, "0")}`;
}

/** Configuration as JSON has it: functions by their names, classes by their fields, numbers that are none as text. */
function toPlain(value: unknown): LineValue {
  const text = JSON.stringify(value, (_, entry: unknown) => {
    if (typeof entry === "function") return entry.name === "" ? "(function)" : entry.name;
    if (typeof entry === "bigint") return entry.toString();
    if (typeof entry === "number" && !Number.isFinite(entry)) return String(entry);
    return entry;
  });
  return text === undefined ? undefined : (JSON.parse(text) as LineValue);
}
