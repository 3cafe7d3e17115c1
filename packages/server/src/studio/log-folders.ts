import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import type { StudioExhibitKind, StudioFile, StudioLogLine, StudioSpans } from "tinker-ts/wire";
import { notFound } from "../errors/api-error.js";
import { toNumber } from "../recording/numbers.js";
import type { LogRecord, Mark } from "../store/logs-table.js";
import { codeChanges } from "./code-changes.js";
import { EvaluationScores } from "./evaluation-scores.js";
import { exhibitsOfFolder, exhibitStepsOfFolder, type FolderExhibit } from "./folder-exhibits.js";
import { isWithin, maxFileBytes, RunFiles, type JsonLine } from "./folder-files.js";
import { FolderMetrics } from "./folder-metrics.js";
import { Lookout } from "./lookout.js";
import { kindOf } from "./run-kind.js";
import type { RunSeries } from "./run-series.js";

/** Files of a run's folder that are shown; everything else in it is nobody's business. */
const textFiles =
  /^(logs\.log|code\.diff|(iteration_\d{6}\/|capture\/|[\w-]+\/(?=result|trajectories))?[\w.-]+\.jsonl?)$/;
const pageFiles = /^(iteration_\d{6}\/)?[\w.-]+\.html$/;
const runningMs = 120_000;
const lookMs = 1000;
const patienceMs = 1500;
const maxFolders = 2000;
const maxDiffBytes = 1 << 20;

/** A folder that holds a run. */
interface RunFolder {
  readonly id: string;
  readonly files: RunFiles;
  readonly metrics: FolderMetrics | EvaluationScores;
  config: unknown;
  changedAt: number;
  createdAt: number;
  isFinal: boolean;
  marks: Mark[];
  size: string;
}

/**
 * Folders of runs that were given with `--logs`, as the Python cookbook and `RunLog` write them.
 *
 * - A folder is a run when it holds `metrics.jsonl` or `config.json`; the given folder and one level below
 *   are looked at. So is each evaluation of a store, which has a `runs.jsonl` beside its folder `runs`. Links
 *   that lead out of what was given are not followed.
 * - What has grown is read when somebody looks, from where the last reading ended.
 */
export class LogFolders {
  readonly #roots: readonly string[];
  readonly #folders = new Map<string, RunFolder>();
  readonly #lookout = new Lookout(() => this.#lookNow(), { everyMs: lookMs, patienceMs });

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  get isEmpty(): boolean {
    return this.#roots.length === 0;
  }

  /** Whether an id is one of a folder. */
  static isFolder(id: string): boolean {
    return id.startsWith("folder-");
  }

  /** Looks for runs and for what is new in them; waits a moment, then goes on in the background. */
  async look(): Promise<void> {
    if (!this.isEmpty) await this.#lookout.look();
  }

  /** All runs, as records of an owner. */
  records(owner: string): LogRecord[] {
    return [...this.#folders.values()].map((folder) => toRecord(folder, owner));
  }

  record(owner: string, id: string): LogRecord | undefined {
    const folder = this.#folders.get(id);
    return folder && toRecord(folder, owner);
  }

  series(id: string): RunSeries {
    return this.#find(id).metrics.series();
  }

  marks(id: string): readonly Mark[] {
    return this.#find(id).marks;
  }

  /** The base model that a run's configuration names. */
  baseModel(id: string): string | null {
    const { model_name: name, base_model: base } = (this.#find(id).config ?? {}) as JsonLine;
    const found = name ?? base;
    return typeof found === "string" ? found : null;
  }

  version(id: string): number {
    return this.#folders.get(id)?.metrics.version ?? 0;
  }

  async files(id: string): Promise<StudioFile[]> {
    const { files } = this.#find(id);
    const names = await readdir(files.folder, { recursive: true }).catch(() => []);
    const shown: StudioFile[] = [];
    for (const name of names
      .map((one) => one.replaceAll("\\", "/"))
      .toSorted()
      .slice(0, 5000)) {
      const isText = textFiles.test(name);
      if (!isText && !pageFiles.test(name)) continue;
      const found = await files.find(name).catch(() => undefined);
      if (found) shown.push({ name, sizeBytes: found.size, isText });
    }
    return shown;
  }

  /** A file of a run; HTML is never a page here, only something to keep. */
  async file(id: string, name: string): Promise<Response> {
    const isText = textFiles.test(name);
    if (!isText && !pageFiles.test(name)) throw notFound(`file ${name}`);
    const { place, size } = await this.#find(id).files.find(name);
    if (size > maxFileBytes) throw notFound(`a file of at most 64 MB called ${name}`);
    const bytes = await readFile(place);
    const fileName = path.basename(name).replace(/[^\w.-]/g, "_");
    return new Response(new Uint8Array(bytes), {
      headers: {
        "content-type": isText ? "text/plain; charset=utf-8" : "application/octet-stream",
        "content-length": String(bytes.length),
        ...(isText ? {} : { "content-disposition": `attachment; filename="${fileName}"` }),
      },
    });
  }

  /** Lines of the text log; `name:line [LEVEL] message`. */
  async lines(id: string): Promise<StudioLogLine[]> {
    const text = (await this.#find(id).files.text("logs.log")) ?? "";
    return text
      .slice(0, text.lastIndexOf("\n") + 1)
      .split("\n")
      .slice(0, -1)
      .map((line, n) => ({ n, at: null, level: levelOf(line), text: line }));
  }

  /** Where the time of steps went. */
  async spans(id: string, from: number, to: number, limit: number): Promise<StudioSpans> {
    const lines = await this.#find(id).files.lines("timing_spans.jsonl");
    const steps = lines.flatMap(({ step, spans }) => {
      if (typeof step !== "number" || step < from || step > to || !Array.isArray(spans)) return [];
      return {
        step,
        spans: (spans as JsonLine[]).flatMap((span) => {
          const { name, wall_start: start, wall_end: end } = span;
          if (typeof name !== "string" || typeof start !== "number" || typeof end !== "number")
            return [];
          return { name, startSeconds: start, endSeconds: end };
        }),
      };
    });
    return { steps: steps.slice(-limit) };
  }

  /** Steps that have something of a kind to look at. */
  steps(id: string, kind: StudioExhibitKind): Promise<number[]> {
    return exhibitStepsOfFolder(this.#find(id).files, kind);
  }

  /** What a step has to look at. */
  exhibits(id: string, kind: StudioExhibitKind, step: number): Promise<FolderExhibit[]> {
    return exhibitsOfFolder(this.#find(id).files, kind, step);
  }

  #find(id: string): RunFolder {
    const folder = this.#folders.get(id);
    if (!folder) throw notFound(`run ${id}`);
    return folder;
  }

  async #lookNow(): Promise<void> {
    for (const given of this.#roots) {
      const root = await realpath(given).catch(() => undefined);
      if (root === undefined) continue;
      for (const candidate of [root, ...(await foldersIn(root))].slice(0, maxFolders)) {
        await this.#consider(root, candidate);
        const isStore = await stat(path.join(candidate, "runs.jsonl")).catch(() => undefined);
        if (!isStore) continue;
        for (const run of (await foldersIn(path.join(candidate, "runs"))).slice(0, maxFolders))
          await this.#consider(root, run, "metadata.json");
      }
    }
    for (const folder of this.#folders.values()) await folder.metrics.update();
  }

  /** Takes a folder for a run if it is one; an evaluation has another file for its configuration. */
  async #consider(root: string, candidate: string, configName = "config.json"): Promise<void> {
    const folder = await realpath(candidate).catch(() => undefined);
    if (folder === undefined || !isWithin(folder, root)) return;
    const isEvaluation = configName !== "config.json";
    const names = ["metrics.jsonl", configName, "checkpoints.jsonl", "code.diff", "logs.log"];
    const stats = await Promise.all(
      names.map((name) => stat(path.join(folder, name)).catch(() => undefined)),
    );
    if (!stats[1] && (isEvaluation || !stats[0])) return;
    const id = `folder-${createHash("sha256").update(folder).digest("hex").slice(0, 20)}`;
    const files = this.#folders.get(id)?.files ?? new RunFiles(folder, root);
    const known = this.#folders.get(id) ?? {
      id,
      files,
      metrics: isEvaluation
        ? new EvaluationScores(files)
        : new FolderMetrics(path.join(folder, "metrics.jsonl")),
      config: undefined,
      changedAt: 0,
      createdAt: Math.min(...stats.flatMap((one) => one?.birthtimeMs ?? [])),
      isFinal: false,
      marks: [],
      size: "",
    };
    known.changedAt = Math.max(...stats.flatMap((one) => one?.mtimeMs ?? []));
    const size = stats
      .slice(1, 4)
      .map((one) => `${one?.size}:${one?.mtimeMs}`)
      .join(" ");
    this.#folders.set(id, known);
    if (size === known.size) return;
    known.size = size;
    known.config = await configOf(files, configName);
    const rows = await files.lines("checkpoints.jsonl");
    known.isFinal = rows.some((row) => row["final"] === true) || hasScores(known.config);
    known.marks = rows.map((row) => ({
      x: toNumber(row["batch"]) ?? 0,
      at: known.changedAt,
      kind: "checkpoint",
      text: `checkpoint ${String(row["name"])} saved`,
      subject: (row["sampler_path"] ?? row["state_path"] ?? null) as string | null,
    }));
  }
}

async function foldersIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((one) => !one.isFile()).map(({ name }) => path.join(folder, name));
}

/** What a run was configured with, and with which changes to the code. */
async function configOf(files: RunFiles, name: string): Promise<JsonLine | undefined> {
  const config = await files.json(name);
  const changes = codeChanges((await files.text("code.diff", maxDiffBytes)) ?? "");
  return Object.keys(changes).length > 0 ? { ...config, "code.diff": changes } : config;
}

/** An evaluation has its scores when it is done. */
function hasScores(config: unknown): boolean {
  const scores = (config as { scores?: unknown } | undefined)?.scores;
  return typeof scores === "object" && scores !== null && Object.keys(scores).length > 0;
}

function toRecord(folder: RunFolder, owner: string): LogRecord {
  const now = Date.now();
  const isFresh = now - folder.changedAt < runningMs;
  return {
    logId: folder.id,
    owner,
    source: "folder",
    kind: kindOf(folder.config),
    name: path.basename(folder.files.folder),
    group: null,
    tags: [],
    config: folder.config === undefined ? null : JSON.stringify(folder.config),
    folder: folder.files.folder,
    status: folder.isFinal ? "completed" : isFresh ? "running" : "idle",
    statusReason: null,
    attempt: folder.metrics.attempts,
    steps: 0,
    dropped: folder.metrics.brokenLines,
    isPinned: false,
    archivedAt: null,
    pausedAt: null,
    controls: null,
    createdAt: Math.round(folder.createdAt),
    updatedAt: Math.round(folder.changedAt),
  };
}

function levelOf(line: string): StudioLogLine["level"] {
  const level = /\[(\w+)\]/.exec(line)?.[1]?.toUpperCase();
  if (level === "ERROR" || level === "CRITICAL") return "error";
  return level === "WARNING" || level === "WARN" ? "warning" : "info";
}
