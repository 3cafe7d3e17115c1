import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import type { StudioExhibit, StudioExhibitDetail, StudioFile, StudioLogLine } from "tinker-ts/wire";
import { notFound } from "../errors/api-error.js";
import { toNumber, toPlain } from "../recording/numbers.js";
import type { LogRecord, Mark } from "../store/logs-table.js";
import { FolderMetrics, parseLine } from "./folder-metrics.js";
import { kindOf } from "./run-kind.js";
import type { RunSeries } from "./run-series.js";

/** Files of a run's folder that are shown; everything else in it is nobody's business. */
const textFiles =
  /^(config\.json|metrics\.jsonl|checkpoints\.jsonl|timing_spans\.jsonl|trace_events\.jsonl|logs\.log|code\.diff|(iteration_\d{6}\/)?[\w.-]+\.(jsonl|json)|capture\/[\w.-]+\.jsonl)$/;
const pageFiles = /^(iteration_\d{6}\/)?[\w.-]+\.html$/;
const iteration = /^iteration_(\d{6})$/;
const summaries = /^(.+?)_rollout_summaries\.jsonl$/;
const runningMs = 120_000;
const lookMs = 1000;
const maxFileBytes = 64 << 20;
const maxFolders = 2000;

/** A folder that holds a run. */
interface RunFolder {
  readonly id: string;
  readonly root: string;
  readonly folder: string;
  readonly metrics: FolderMetrics;
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
 *   are looked at. Links that lead out of it are not followed.
 * - What has grown is read when somebody looks, from where the last reading ended.
 */
export class LogFolders {
  readonly #roots: readonly string[];
  readonly #folders = new Map<string, RunFolder>();
  #looking: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

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
  async look(patienceMs = 1500): Promise<void> {
    if (this.isEmpty) return;
    if (performance.now() - this.#lookedAt > lookMs) {
      this.#looking ??= this.#lookNow().finally(() => {
        this.#looking = undefined;
        this.#lookedAt = performance.now();
      });
    }
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, patienceMs);
    });
    await Promise.race([this.#looking, late]);
    clearTimeout(timer);
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

  version(id: string): number {
    return this.#folders.get(id)?.metrics.version ?? 0;
  }

  async files(id: string): Promise<StudioFile[]> {
    const { folder } = this.#find(id);
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    const files: StudioFile[] = [];
    for (const name of names
      .map((one) => one.replaceAll("\\", "/"))
      .toSorted()
      .slice(0, 5000)) {
      const isText = textFiles.test(name);
      if (!isText && !pageFiles.test(name)) continue;
      const found = await this.#inside(id, name).catch(() => undefined);
      if (found) files.push({ name, sizeBytes: found.size, isText });
    }
    return files;
  }

  /** A file of a run; HTML is never a page here, only something to keep. */
  async file(id: string, name: string): Promise<Response> {
    const isText = textFiles.test(name);
    if (!isText && !pageFiles.test(name)) throw notFound(`file ${name}`);
    const { place, size } = await this.#inside(id, name);
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
    const found = await this.#inside(id, "logs.log").catch(() => undefined);
    if (!found || found.size > maxFileBytes) return [];
    const text = await readFile(found.place, "utf8");
    return text
      .slice(0, text.lastIndexOf("\n") + 1)
      .split("\n")
      .slice(0, -1)
      .map((line, n) => ({ n, at: null, level: levelOf(line), text: line }));
  }

  async steps(id: string): Promise<number[]> {
    const names = await readdir(this.#find(id).folder).catch(() => []);
    return names
      .flatMap((name) => iteration.exec(name)?.[1] ?? [])
      .map(Number)
      .toSorted((a, b) => a - b);
  }

  /** Rollouts of a step: from summaries, with conversations where a log tree has as many. */
  async rollouts(id: string, step: number): Promise<StudioExhibitDetail[]> {
    const { folder } = this.#find(id);
    const name = `iteration_${String(step).padStart(6, "0")}`;
    const names = await readdir(path.join(folder, name)).catch(() => []);
    const found: StudioExhibitDetail[] = [];
    for (const file of names) {
      const split = summaries.exec(file)?.[1];
      if (split === undefined) continue;
      const rows = await this.#jsonLines(id, `${name}/${file}`);
      const conversations = await this.#conversations(id, `${name}/${split}_logtree.json`);
      const texts = await this.#jsonLines(id, `${name}/${split}_transcripts.jsonl`);
      const isMatched = conversations.length === rows.length;
      for (const [index, row] of rows.entries()) {
        const own = texts.find(
          (text) => text["group_idx"] === row["group_idx"] && text["traj_idx"] === row["traj_idx"],
        );
        const detail = { id, step, split, index };
        const messages = isMatched ? conversations[index]! : null;
        const text = typeof own?.["text"] === "string" ? own["text"] : null;
        found.push(toRollout(detail, row, messages, text));
      }
    }
    return found;
  }

  async #conversations(
    id: string,
    name: string,
  ): Promise<NonNullable<StudioExhibitDetail["messages"]>[]> {
    const place = await this.#inside(id, name).catch(() => undefined);
    if (!place || place.size > maxFileBytes) return [];
    const tree = parseLine(await readFile(place.place, "utf8"));
    const found: NonNullable<StudioExhibitDetail["messages"]>[] = [];
    const walk = (node: unknown, depth: number): void => {
      if (typeof node !== "object" || node === null || depth > 200) return;
      const { data, children } = node as { data?: Record<string, unknown>; children?: unknown };
      if (data?.["type"] === "conversation" && Array.isArray(data["messages"])) {
        found.push((data["messages"] as Record<string, unknown>[]).map(toMessage));
        return;
      }
      if (Array.isArray(children)) for (const child of children) walk(child, depth + 1);
    };
    walk(tree?.["root"], 0);
    return found;
  }

  async #jsonLines(id: string, name: string): Promise<Record<string, unknown>[]> {
    const found = await this.#inside(id, name).catch(() => undefined);
    if (!found || found.size > maxFileBytes) return [];
    const text = await readFile(found.place, "utf8");
    return text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map(parseLine)
      .filter((line) => line !== undefined);
  }

  #find(id: string): RunFolder {
    const folder = this.#folders.get(id);
    if (!folder) throw notFound(`run ${id}`);
    return folder;
  }

  /** A file of a folder, wherever its name leads, as long as that is within what was given. */
  async #inside(id: string, name: string): Promise<{ place: string; size: number }> {
    const { folder, root } = this.#find(id);
    const refused = notFound(`file ${name}`);
    const wanted = path.join(folder, name);
    if (!isWithin(wanted, folder)) throw refused;
    const place = await realpath(wanted).catch(() => {
      throw refused;
    });
    if (!isWithin(place, root)) throw refused;
    const found = await stat(place);
    if (!found.isFile()) throw refused;
    return { place, size: found.size };
  }

  async #lookNow(): Promise<void> {
    for (const given of this.#roots) {
      const root = await realpath(given).catch(() => undefined);
      if (root === undefined) continue;
      const below = await readdir(root, { withFileTypes: true }).catch(() => []);
      const candidates = [root, ...below.map((entry) => path.join(root, entry.name))];
      for (const candidate of candidates.slice(0, maxFolders))
        await this.#consider(root, candidate);
    }
    for (const folder of this.#folders.values()) await folder.metrics.update();
  }

  async #consider(root: string, candidate: string): Promise<void> {
    const folder = await realpath(candidate).catch(() => undefined);
    if (folder === undefined || (folder !== root && !isWithin(folder, root))) return;
    const names = ["metrics.jsonl", "config.json", "checkpoints.jsonl", "logs.log"];
    const stats = await Promise.all(
      names.map((name) => stat(path.join(folder, name)).catch(() => undefined)),
    );
    if (!stats[0] && !stats[1]) return;
    const id = `folder-${createHash("sha256").update(folder).digest("hex").slice(0, 20)}`;
    const known = this.#folders.get(id) ?? {
      id,
      root,
      folder,
      metrics: new FolderMetrics(path.join(folder, "metrics.jsonl")),
      config: undefined,
      changedAt: 0,
      createdAt: Math.min(...stats.flatMap((one) => one?.birthtimeMs ?? [])),
      isFinal: false,
      marks: [],
      size: "",
    };
    known.changedAt = Math.max(...stats.flatMap((one) => one?.mtimeMs ?? []));
    const size = stats
      .slice(1, 3)
      .map((one) => `${one?.size}:${one?.mtimeMs}`)
      .join(" ");
    this.#folders.set(id, known);
    if (size === known.size) return;
    known.size = size;
    const read = (name: string) =>
      this.#inside(id, name).then(({ place }) => readFile(place, "utf8"));
    known.config = await read("config.json").then(parseLine, () => undefined);
    const rows = await this.#jsonLines(id, "checkpoints.jsonl");
    known.isFinal = rows.some((row) => row["final"] === true);
    known.marks = rows.map((row) => ({
      x: toNumber(row["batch"]) ?? 0,
      at: known.changedAt,
      kind: "checkpoint",
      text: `checkpoint ${String(row["name"])} saved`,
      subject: (row["sampler_path"] ?? row["state_path"] ?? null) as string | null,
    }));
  }
}

function isWithin(place: string, folder: string): boolean {
  return place === folder || place.startsWith(folder + path.sep);
}

function toRecord(folder: RunFolder, owner: string): LogRecord {
  const now = Date.now();
  const isFresh = now - folder.changedAt < runningMs;
  return {
    logId: folder.id,
    owner,
    source: "folder",
    kind: kindOf(folder.config),
    name: path.basename(folder.folder),
    group: null,
    tags: [],
    config: folder.config === undefined ? null : JSON.stringify(folder.config),
    folder: folder.folder,
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

function toMessage({ role, content, ...rest }: Record<string, unknown>) {
  const parts = typeof content === "string" ? content : JSON.stringify(content ?? "");
  const more = Object.keys(rest).length === 0 ? "" : `\n${JSON.stringify(rest)}`;
  return { role: typeof role === "string" ? role : "unknown", content: parts + more };
}

function toRollout(
  { id, step, split, index }: { id: string; step: number; split: string; index: number },
  row: Readonly<Record<string, unknown>>,
  messages: StudioExhibitDetail["messages"],
  text: string | null,
): StudioExhibitDetail {
  const steps = (Array.isArray(row["steps"]) ? row["steps"] : []) as Record<string, unknown>[];
  const sum = (name: string): number =>
    steps.reduce((total, one) => total + (toNumber(one[name]) ?? 0), 0);
  const reward = toNumber(row["total_reward"]);
  const head: StudioExhibit = {
    id: `${id}.${step}.${split}.${index}`,
    run: id,
    step,
    kind: "rollout",
    split,
    group: toNumber(row["group_idx"]) ?? null,
    index: toNumber(row["traj_idx"]) ?? index,
    reward: reward === undefined ? null : toPlain(reward),
    advantage: null,
    nll: null,
    tokenCount: sum("ob_len") + sum("ac_len"),
    trainedCount: sum("ac_len"),
    stopReason: (row["stop_reason"] as string | undefined) ?? null,
    preview: (text ?? messages?.map(({ content }) => content).join("\n") ?? "").slice(0, 200),
    at: 0,
  };
  const logs = steps.flatMap((one) =>
    Object.entries(one["logs"] ?? {}).map(([key, value]) => `${key}: ${String(value)}`),
  );
  return {
    ...head,
    from: 0,
    tokens: {
      ids: [],
      pieces: [],
      isSpecial: [],
      weight: null,
      logprob: null,
      samplerLogprob: null,
      advantage: null,
    },
    text,
    messages,
    metrics: (row["trajectory_metrics"] ?? {}) as StudioExhibitDetail["metrics"],
    logs,
    weights: null,
    warnings: [],
    raw: row,
  };
}
