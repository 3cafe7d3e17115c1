import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { readCheckpointLine, type CheckpointRow } from "./checkpoint-row.js";
import { parseJsonLine, parseJsonLines, type Line, type ReadLines } from "./folder-writer.js";
import type { Span } from "./open-telemetry-sink.js";

/** The files of a run's folder; the Python cookbook has the same. */
export const runFiles = {
  config: "config.json",
  metrics: "metrics.jsonl",
  checkpoints: "checkpoints.jsonl",
  spans: "timing_spans.jsonl",
  text: "logs.log",
} as const;

/** All metrics of one step. */
export interface StepMetrics {
  /** The step, or undefined for metrics without one. */
  readonly step: number | undefined;
  /** Which start of the program wrote them, from 1. */
  readonly attempt: number;
  /** When the first of them was written, in seconds since 1970, where the file has it. */
  readonly time: number | undefined;
  /** The values, by name. */
  readonly metrics: Readonly<Record<string, number | string | boolean>>;
}

/** The spans of one step. */
export interface StepTiming {
  /** The step. */
  readonly step: number;
  /** What took how long, in the order in which it ended. */
  readonly spans: readonly Span[];
}

/** A run as read from its folder. */
export interface RunFolder {
  /** Where it is. */
  readonly folder: string;
  /** What the run was configured with; undefined without a readable `config.json`. */
  readonly config: Line | undefined;
  /** One entry per step in order; of several attempts at a step the last one counts. */
  readonly metrics: readonly StepMetrics[];
  /** What earlier attempts had logged beyond the point where a later one went on. */
  readonly abandoned: readonly StepMetrics[];
  /** Saved checkpoints, oldest first. */
  readonly checkpoints: readonly CheckpointRow[];
  /** Where the time of each step went. */
  readonly timings: readonly StepTiming[];
  /** How often the program was started on this folder; 0 for an empty one. */
  readonly attempts: number;
  /** `completed` with a final checkpoint, `running` when changed within two minutes, else `idle`. */
  readonly status: "completed" | "running" | "idle";
  /** What could not be read, in words. */
  readonly problems: readonly string[];
}

const runningSeconds = 120;

/** Reads the folder of a run, this package's or one of the Python cookbook; broken lines are skipped and reported. */
export async function readRunFolder(folder: string): Promise<RunFolder> {
  const problems: string[] = [];
  const read = async (name: string): Promise<readonly Line[]> => {
    const { lines, brokenLines } = await readJsonLines(path.join(folder, name));
    if (brokenLines.length > 0) {
      problems.push(`${name}: skipped line ${brokenLines.join(", ")}, which is not JSON`);
    }
    return lines;
  };
  const config = await readConfig(folder, problems);
  const metricLines = (await read(runFiles.metrics)).map(toStepMetrics);
  const { current, abandoned } = mergeSteps(metricLines);
  const rows = (await read(runFiles.checkpoints)).map(readCheckpointLine);
  const checkpoints = rows.filter((row) => row !== undefined);
  if (checkpoints.length < rows.length) {
    problems.push(`${runFiles.checkpoints}: skipped a line without a name`);
  }
  const attempts = metricLines.reduce((most, { attempt }) => Math.max(most, attempt), 0);
  return {
    folder,
    config,
    metrics: current,
    abandoned,
    checkpoints,
    timings: (await read(runFiles.spans)).flatMap(toTiming),
    attempts: Math.max(attempts, checkpoints.length > 0 || config ? 1 : 0),
    status: checkpoints.some(({ final }) => final) ? "completed" : await activity(folder),
    problems,
  };
}

/** Reads the whole lines of a file from a byte on; a file that is not there has none. */
export async function readJsonLines(file: string, fromByte = 0): Promise<ReadLines> {
  const bytes = await readFile(file).catch(ignoreMissing);
  if (!bytes || bytes.length < fromByte) return { lines: [], brokenLines: [], nextByte: 0 };
  const read = parseJsonLines(bytes.subarray(fromByte));
  return { ...read, nextByte: fromByte + read.nextByte };
}

async function readConfig(folder: string, problems: string[]): Promise<Line | undefined> {
  const text = await readFile(path.join(folder, runFiles.config), "utf8").catch(ignoreMissing);
  if (text === undefined) return undefined;
  const config = parseJsonLine(text);
  if (!config) problems.push(`${runFiles.config}: is not a JSON object`);
  return config;
}

function toStepMetrics(line: Line): StepMetrics {
  const { step, _time: time, _attempt: attempt, ...rest } = line;
  const values = Object.entries(rest).filter(
    (entry): entry is [string, number | string | boolean] =>
      ["number", "string", "boolean"].includes(typeof entry[1]),
  );
  return {
    step: typeof step === "number" ? step : undefined,
    attempt: typeof attempt === "number" ? attempt : 1,
    time: typeof time === "number" ? time : undefined,
    metrics: Object.fromEntries(values),
  };
}

/** Lines of one step become one; a later attempt takes the place of earlier ones from its first step on. */
function mergeSteps(lines: readonly StepMetrics[]): {
  current: StepMetrics[];
  abandoned: StepMetrics[];
} {
  const steps = new Map<number | undefined, StepMetrics>();
  const abandoned: StepMetrics[] = [];
  let attempt = 0;
  for (const line of lines) {
    if (line.attempt > attempt) {
      const first = line.step ?? Number.POSITIVE_INFINITY;
      for (const [step, earlier] of steps) {
        if (step === undefined || step < first) continue;
        abandoned.push(earlier);
        steps.delete(step);
      }
      attempt = line.attempt;
    }
    const known = steps.get(line.step);
    const merged = known && { ...line, time: known.time ?? line.time };
    steps.set(
      line.step,
      merged ? { ...merged, metrics: { ...known.metrics, ...line.metrics } } : line,
    );
  }
  const inOrder = (a: StepMetrics, b: StepMetrics): number => (a.step ?? -1) - (b.step ?? -1);
  return { current: [...steps.values()].toSorted(inOrder), abandoned: abandoned.toSorted(inOrder) };
}

function toTiming({ step, spans }: Line): StepTiming[] {
  if (typeof step !== "number" || !Array.isArray(spans)) return [];
  const read = (spans as Line[]).flatMap(({ name, wall_start: start, wall_end: end }) =>
    typeof name === "string" && typeof start === "number" && typeof end === "number"
      ? { name, startSeconds: start, endSeconds: end }
      : [],
  );
  return [{ step, spans: read }];
}

async function activity(folder: string): Promise<"running" | "idle"> {
  const times = await Promise.all(
    Object.values(runFiles).map(async (name) => {
      const found = await stat(path.join(folder, name)).catch(ignoreMissing);
      return found?.mtimeMs ?? 0;
    }),
  );
  return Date.now() - Math.max(...times) < runningSeconds * 1000 ? "running" : "idle";
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw error;
  return undefined;
}
