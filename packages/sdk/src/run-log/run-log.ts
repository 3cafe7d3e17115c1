import { createHash, randomUUID } from "node:crypto";
import { readdir } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import { ArgumentError } from "../errors/argument-error.js";
import type { StudioControls } from "../wire/studio.js";
import { toCheckpointLine, type CheckpointRow } from "./checkpoint-row.js";
import { FolderClaim } from "./folder-claim.js";
import { FolderWriter, type Line, type LineValue, toJsonLine } from "./folder-writer.js";
import { readRunFolder, runFiles, type RunFolder } from "./run-folder.js";
import type {
  LoggedExample,
  Metrics,
  Rollout,
  RunRecord,
  RunSink,
  TextLevel,
} from "./run-record.js";
import { ServiceSink, type LogPort } from "./service-sink.js";
import { StepSpans, type Span } from "./open-telemetry-sink.js";

/** How a run is logged. */
export interface RunLogOptions {
  /** The run's folder; it is made when it is not there. Without one, nothing is written to files. */
  readonly folder?: string | undefined;
  /** The server that shows the run live in its studio; files only without one. */
  readonly service?: { createRestClient(): LogPort } | undefined;
  /**
   * What people call the run.
   * @default the name of its folder
   */
  readonly name?: string | undefined;
  /** Runs that belong together, such as those of a sweep. */
  readonly group?: string | undefined;
  /** Labels. */
  readonly tags?: readonly string[] | undefined;
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
  /** Further destinations of the run. */
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
 * - What cannot be written is dropped and counted, reported to the sinks, and reported again by `close`.
 * - A folder has one process that writes; another one is refused at `open`.
 */
export class RunLog implements AsyncDisposable {
  /** Where the run is written; empty when it is not. */
  readonly folder: string;
  /** The run that the folder held when it was opened. */
  readonly previous: RunFolder;
  /** Which start of the program this is, from 1. */
  readonly attempt: number;
  readonly #claim: FolderClaim | undefined;
  readonly #writer: FolderWriter | undefined;
  readonly #sinks: Set<RunSink>;
  readonly #service: ServiceSink | undefined;
  #spans: StepSpans | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #ending: { readonly status: "completed" | "failed"; readonly reason?: string } | undefined;
  #waiting: { readonly name: string; readonly text: string }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #dropped = 0;
  #failure: unknown;
  #isClosed = false;
  #closing: Promise<void> | undefined;
  /** Waits until the run really goes on: one that is refused must not change what it was. */
  #config: string | undefined;

  private constructor(options: RunLogOptions, previous: RunFolder, claim?: FolderClaim) {
    this.#claim = claim;
    this.folder = previous.folder;
    this.previous = previous;
    this.attempt = previous.attempts + 1;
    this.#writer = this.folder === "" ? undefined : new FolderWriter(this.folder);
    this.#service = options.service && this.#openService(options, options.service);
    this.#sinks = new Set([...(options.sinks ?? []), ...(this.#service ? [this.#service] : [])]);
  }

  /** Opens the folder of a new run, or of one that goes on. */
  static async open(options: RunLogOptions): Promise<RunLog> {
    const { folder, ifExists = "resume" } = options;
    if (folder === undefined && (options.service || (options.sinks?.length ?? 0) > 0)) {
      const run = new RunLog(options, noFolder);
      await run.#start(options.config);
      return run;
    }
    if (typeof folder !== "string" || folder === "") {
      throw new ArgumentError(
        "folder",
        "must name a folder for the run's files; or give `service`",
      );
    }
    const claim = await FolderClaim.take(path.resolve(folder));
    try {
      const previous = await previousRun(folder, ifExists);
      const run = new RunLog(options, previous, claim);
      await run.#start(options.config);
      return run;
    } catch (error) {
      await claim.release();
      throw error;
    }
  }

  /** Metrics that were dropped because they could not be written in time. */
  get droppedLines(): number {
    return this.#dropped;
  }

  /** What people have asked for in the studio: to stop and save, or values that the loop reads. */
  get controls(): StudioControls {
    return this.#service?.controls ?? noControls;
  }

  /** Aborted when a user of the studio has asked to stop after this step and save. */
  get stopRequested(): AbortSignal {
    return this.#service?.stopRequested ?? neverAborted;
  }

  /** Joins what the server records of a model, its checkpoints and its samples to this run. */
  watch(training: { readonly modelId: string }): void {
    this.#record({ kind: "watch", model: training.modelId });
  }

  /** Shows rollouts of a step: a list for each group. */
  logRollouts(
    step: number,
    groups: readonly (readonly Rollout[])[],
    { split = "train" }: { readonly split?: string | undefined } = {},
  ): void {
    this.#record({ kind: "rollouts", step, split, groups });
  }

  /** Shows examples of a step. What a watched model is trained on is shown by itself. */
  logExamples(
    step: number,
    examples: readonly LoggedExample[],
    { split = "train" }: { readonly split?: string | undefined } = {},
  ): void {
    this.#record({ kind: "examples", step, split, examples });
  }

  /** Does something and takes its time, which is logged with the next metrics of a step. */
  span<T>(name: string, work: () => PromiseLike<T> | T): Promise<T> {
    this.#spans ??= new StepSpans();
    return this.#spans.span(name, work);
  }

  /** Sets the outcome of the run, before `close`; completed by default. */
  fail(error: unknown): void {
    this.#ending = { status: "failed", reason: String(error) };
    this.text(String(error), "error");
  }

  /** Logs values of a step; several calls for one step are read as one. */
  log(metrics: Metrics, { step }: { readonly step?: number | undefined } = {}): void {
    const time = Date.now() / 1000;
    const { attempt } = this;
    if (step !== undefined) this.#logTaken(step);
    this.#writeConfig().catch((error: unknown) => (this.#failure ??= error));
    const line = { step, ...metrics, _time: time, _attempt: attempt };
    this.#enqueue(runFiles.metrics, toJsonLine(line));
    this.#record({ kind: "metrics", step, metrics, time, attempt });
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
    this.#record({ kind: "spans", step, spans });
  }

  /** Writes a sentence for people to the text log. */
  text(text: string, level: TextLevel = "info"): void {
    this.#enqueue(runFiles.text, `tinker-ts [${level.toUpperCase()}] ${text}\n`);
    this.#record({ kind: "text", level, text });
  }

  /** Records a checkpoint; it is on the disk when this resolves. */
  async checkpoint(row: CheckpointRow): Promise<void> {
    await this.flush();
    await this.#writeConfig();
    await this.#writer?.append(runFiles.checkpoints, toJsonLine(toCheckpointLine(row)), {
      durable: true,
    });
    this.#record({ kind: "checkpoint", row });
  }

  /** Appends lines to a file of an iteration, such as its rollout summaries. */
  logIteration(iteration: number, fileName: string, lines: readonly Line[]): void {
    const name = path.join(iterationName(iteration), fileName);
    this.#enqueue(name, lines.map(toJsonLine).join(""));
  }

  /** Writes a whole file of an iteration, such as a page that shows it. */
  async writeIteration(iteration: number, fileName: string, text: string): Promise<void> {
    await this.#writer?.replace(path.join(iterationName(iteration), fileName), text);
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
        await this.#writer?.append(name, lines.join(""));
      } catch (error) {
        this.#dropped += lines.length;
        this.#failure ??= error;
      }
    });
    // What an earlier flush is still writing counts too.
    this.#writing = Promise.all([this.#writing, ...writes]);
    await this.#writing;
  }

  /** Writes what waits and ends the sinks; throws when something could not be written. */
  close(): Promise<void> {
    // The first caller gets the error about what could not be written.
    if (this.#closing) return this.#closing.catch(() => {});
    this.#closing = this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#record({ kind: "close", ...this.#ending });
    // What goes wrong with a sink now is still to be in the files.
    await Promise.allSettled([...this.#sinks].map(async (sink) => sink.close?.()));
    this.#isClosed = true;
    await this.flush();
    await this.#claim?.release();
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
    this.#record({ kind: "open", folder: this.folder, config: plain, attempt: this.attempt });
    for (const problem of this.previous.problems) this.text(problem, "warning");
    this.text(`attempt ${this.attempt}: ${process.argv.slice(1).join(" ")}`);
    await this.flush();
    if (this.#failure) throw this.#failure;
  }

  async #writeConfig(): Promise<void> {
    const config = this.#config;
    this.#config = undefined;
    if (config !== undefined) await this.#writer?.replace(runFiles.config, config);
  }

  #openService(
    { folder, name, group, tags }: RunLogOptions,
    service: { createRestClient(): LogPort },
  ): ServiceSink {
    const run = folder === undefined ? randomUUID() : runIdOf(this.folder);
    const known = name ?? (folder === undefined ? undefined : path.basename(this.folder));
    const onProblem = (problem: string): void => this.text(problem, "warning");
    return new ServiceSink(service.createRestClient(), {
      run,
      name: known,
      group,
      tags,
      onProblem,
    });
  }

  /** Logs what was taken the time of since the last step. */
  #logTaken(step: number): void {
    const spans = this.#spans?.spans ?? [];
    this.#spans = undefined;
    if (spans.length > 0) this.logSpans(step, spans);
  }

  #enqueue(name: string, text: string): void {
    if (!this.#writer) return;
    if (this.#isClosed || this.#waiting.length >= maxWaiting) {
      this.#dropped++;
      return;
    }
    this.#waiting.push({ name, text });
    this.#timer ??= setTimeout(() => void this.flush(), flushMs);
  }

  #record(record: RunRecord): void {
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

/** The run that a folder holds, which may be refused or removed. */
async function previousRun(
  folder: string,
  ifExists: NonNullable<RunLogOptions["ifExists"]>,
): Promise<RunFolder> {
  const previous = await readRunFolder(path.resolve(folder));
  if (previous.attempts === 0 || ifExists === "resume") return previous;
  if (ifExists === "fail") {
    throw new ArgumentError("folder", `${folder} holds a run; go on with it or choose another`);
  }
  const names = await readdir(previous.folder);
  const iterations = names.filter((name) => iterationFolder.test(name));
  await new FolderWriter(previous.folder).remove([...Object.values(runFiles), ...iterations]);
  return readRunFolder(previous.folder);
}

const noControls: StudioControls = { version: 0, stop: false, values: {} };
const neverAborted = new AbortController().signal;
const noFolder: RunFolder = {
  folder: "",
  config: undefined,
  metrics: [],
  abandoned: [],
  checkpoints: [],
  timings: [],
  attempts: 0,
  status: "idle",
  problems: [],
};

/** The same folder of the same machine is the same run, however often its program is started. */
function runIdOf(folder: string): string {
  return createHash("sha256").update(`${hostname()}\n${folder}`).digest("hex").slice(0, 24);
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
