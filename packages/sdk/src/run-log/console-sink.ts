import type { Metrics, RunRecord, RunSink } from "./run-record.js";

/** Where a run is shown; `process.stdout` fits. */
export interface ConsoleStream {
  /** Writes text as it is. */
  write(text: string): unknown;
  /** Whether lines can be drawn again. @default false */
  readonly isTTY?: boolean | undefined;
  /**
   * Width in characters.
   * @default 80
   */
  readonly columns?: number | undefined;
}

/** How a run is shown. */
export interface ConsoleSinkOptions {
  /**
   * Where it is shown.
   * @default process.stdout
   */
  readonly stream?: ConsoleStream | undefined;
  /**
   * Metrics to show, the most important first, by name or by a pattern of names.
   * @default losses, scores, rewards and the learning rate
   */
  readonly keys?: readonly (string | RegExp)[] | undefined;
  /** How many steps the run has, for the bar; without it `progress` of the metrics is used. */
  readonly totalSteps?: number | undefined;
}

const defaultKeys = [
  "train_mean_nll",
  "test/nll",
  /^eval\/.*\/score$/,
  "env/all/reward/total",
  "learning_rate",
];
const barWidth = 24;
const curveWidth = 24;
const blocks = "▁▂▃▄▅▆▇█".split("");
const maxRows = 8;
/** A log file gets a line this often at most, unless something was evaluated. */
const lineEvery = 0.05;

/**
 * Shows a run while it goes on: on a screen a bar and a table with rows of a metric, its value and its
 * curve; anywhere else plain lines.
 */
export function consoleSink(options: ConsoleSinkOptions = {}): RunSink {
  const stream = options.stream ?? process.stdout;
  const view = new LiveTable(options.keys ?? defaultKeys, options.totalSteps);
  let drawnRows = 0;
  let toldProgress = Number.NEGATIVE_INFINITY;
  const wipe = (): string => (drawnRows === 0 ? "" : `\u001B[${drawnRows}A\u001B[0J`);
  const say = (text: string): void => {
    stream.write(`${wipe()}${text}\n`);
    drawnRows = 0;
  };
  const draw = (): void => {
    const rows = view.rows().map((row) => row.slice(0, Math.max(20, (stream.columns ?? 80) - 1)));
    stream.write(`${wipe()}${rows.map((row) => `${row}\n`).join("")}`);
    drawnRows = rows.length;
  };
  const tellStep = (metrics: Metrics): void => {
    if (stream.isTTY) return draw();
    const { progress } = view;
    const isWorthALine = isEvaluation(metrics) || progress >= 1;
    if (!isWorthALine && progress - toldProgress < lineEvery) return;
    toldProgress = progress;
    say(view.line(metrics));
  };
  return {
    log(record: RunRecord) {
      if (record.kind === "metrics") {
        view.add(record.step, record.metrics, record.time);
        tellStep(record.metrics);
      } else if (record.kind === "checkpoint") {
        const { name, statePath, samplerPath } = record.row;
        say(`  checkpoint ${name}: ${samplerPath ?? statePath ?? ""}`);
      } else if (record.kind === "text" && record.level !== "info") {
        say(`  ${record.level}: ${record.text}`);
      }
    },
  };
}

/** What has been logged, as rows of text. */
class LiveTable {
  readonly #keys: readonly (string | RegExp)[];
  readonly #totalSteps: number | undefined;
  readonly #series = new Map<string, number[]>();
  #step = 0;
  #progress = 0;
  #first: { readonly time: number; readonly progress: number } | undefined;
  #lastTime = 0;

  constructor(keys: readonly (string | RegExp)[], totalSteps: number | undefined) {
    this.#keys = keys;
    this.#totalSteps = totalSteps;
  }

  get progress(): number {
    return this.#progress;
  }

  add(step: number | undefined, metrics: Metrics, time: number): void {
    this.#step = step ?? this.#step;
    const { progress } = metrics;
    if (typeof progress === "number") this.#progress = progress;
    else if (this.#totalSteps) this.#progress = (this.#step + 1) / this.#totalSteps;
    this.#first ??= { time, progress: this.#progress };
    this.#lastTime = time;
    for (const [key, value] of Object.entries(metrics)) {
      if (typeof value !== "number" || !this.#keys.some((wanted) => matches(wanted, key))) continue;
      const series = this.#series.get(key) ?? [];
      series.push(value);
      this.#series.set(key, series);
    }
  }

  /** A bar, and a row for each metric. */
  rows(): string[] {
    const shown = this.#shown();
    const width = Math.max(0, ...shown.map(([key]) => key.length));
    const full = Math.round(Math.min(1, this.#progress) * barWidth);
    return [
      `  ${"━".repeat(full)}${"╌".repeat(barWidth - full)}  ${this.#place()}${this.#left()}`,
      ...shown.map(
        ([key, series]) =>
          `  ${key.padEnd(width)}  ${format(series.at(-1)!).padStart(9)}  ${curve(series)}`,
      ),
    ];
  }

  /** What some metrics say, in one line. */
  line(metrics: Metrics): string {
    const values = this.#shown()
      .filter(([key]) => key in metrics)
      .map(([key, series]) => `${key} ${format(series.at(-1)!)}`);
    return `  ${[this.#place(), ...values].join("  ")}${this.#left()}`;
  }

  #place(): string {
    if (this.#totalSteps === undefined) return `step ${this.#step + 1}`;
    // What is found out after the last step is logged as a step of its own.
    return `step ${Math.min(this.#step + 1, this.#totalSteps)}/${this.#totalSteps}`;
  }

  #left(): string {
    const first = this.#first;
    const gained = first ? this.#progress - first.progress : 0;
    if (!first || gained <= 0 || this.#progress >= 1) return "";
    const seconds = ((this.#lastTime - first.time) / gained) * (1 - this.#progress);
    return `  ${formatSeconds(seconds)} left`;
  }

  #shown(): [string, number[]][] {
    const rank = (key: string): number => this.#keys.findIndex((wanted) => matches(wanted, key));
    const sorted = [...this.#series].toSorted(([a], [b]) => rank(a) - rank(b));
    return sorted.slice(0, maxRows);
  }
}

function isEvaluation(metrics: Metrics): boolean {
  return Object.keys(metrics).some((key) => /^(test|eval)\//.test(key));
}

function matches(wanted: string | RegExp, key: string): boolean {
  return typeof wanted === "string" ? wanted === key : wanted.test(key);
}

/** The last values as blocks from the lowest to the highest; what is not finite is an exclamation mark. */
function curve(series: readonly number[]): string {
  const part = series.slice(-curveWidth * 8);
  const size = Math.ceil(part.length / curveWidth);
  const means: number[] = [];
  for (let start = 0; start < part.length; start += size) {
    const values = part.slice(start, start + size);
    means.push(values.reduce((sum, value) => sum + value, 0) / values.length);
  }
  const finite = means.filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  return means
    .map((value) => {
      if (!Number.isFinite(value)) return "!";
      const share = high === low ? 0.5 : (value - low) / (high - low);
      return blocks[Math.round(share * (blocks.length - 1))];
    })
    .join("");
}

function format(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) return value.toExponential(2);
  return value.toPrecision(4);
}

function formatSeconds(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
