import { stdout } from "node:process";
import type { Exchange } from "./task.js";

const barWidth = 20;
const chart = { columns: 60, rows: 6 };
const eighths = " ▁▂▃▄▅▆▇█".split("");

/** Tells how training goes: a live bar and curve on a screen, plain lines in a log. */
export class Display {
  readonly #startedAt = performance.now();
  readonly #losses: number[] = [];

  /** Begins a part. */
  title(text: string): void {
    stdout.write(`\n${paint("bold", text)}\n`);
  }

  /** Says something. */
  say(text: string): void {
    stdout.write(`  ${text}\n`);
  }

  /** Tells of a finished step. */
  step(done: number, steps: number, loss: number): void {
    this.#losses.push(loss);
    const count = String(done).padStart(String(steps).length);
    const facts = `step ${count}/${steps}  loss ${loss.toFixed(3)}  ${this.seconds}`;
    if (stdout.isTTY) {
      const full = Math.round((done / steps) * barWidth);
      const bar = `${"━".repeat(full)}${paint("dim", "━".repeat(barWidth - full))}`;
      const [curve = ""] = drawCurve(this.#losses, { columns: 18, rows: 1 });
      stdout.write(`\r\u001B[2K  ${bar} ${facts}  ${curve}${done === steps ? "\n" : ""}`);
    } else if (done % Math.ceil(steps / 10) === 0 || done === steps) {
      this.say(facts);
    }
  }

  /** Shows the whole loss curve, from the first step to the last. */
  curve(): void {
    const [first = 0, last = 0] = [this.#losses[0], this.#losses.at(-1)];
    const lines = drawCurve(this.#losses, chart);
    for (const [row, line] of lines.entries()) {
      const label = row === 0 ? first.toFixed(2) : row === lines.length - 1 ? last.toFixed(2) : "";
      this.say(`${paint("dim", label.padStart(5))} ${line.trimEnd()}`);
    }
  }

  /** Shows some answers of two models, with what was wanted. */
  compare(exam: readonly Exchange[], before: readonly string[], after: readonly string[]): void {
    for (const [index, { question, answer }] of exam.slice(0, 4).entries()) {
      const mark = after[index] === answer ? "✓" : `✗ wanted ${answer}`;
      this.say(question);
      this.say(`  before: ${paint("dim", shorten(before[index] ?? ""))}`);
      this.say(`  now:    ${paint("bold", shorten(after[index] ?? ""))} ${mark}`);
    }
  }

  /** Time since the program started. */
  get seconds(): string {
    return `${((performance.now() - this.#startedAt) / 1000).toFixed(1)} s`;
  }
}

/** The share of right answers. */
export function accuracy(exam: readonly Exchange[], answers: readonly string[]): number {
  return exam.filter(({ answer }, index) => answers[index] === answer).length / exam.length;
}

/** A share for people. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** A curve over zero as lines of blocks, the highest first; a column is the mean of its part. */
function drawCurve(
  values: readonly number[],
  size: { readonly columns: number; readonly rows: number },
): string[] {
  const columns = Math.min(size.columns, values.length);
  const highest = Math.max(...values);
  const heights = Array.from({ length: columns }, (_, column) => {
    const start = Math.floor((column * values.length) / columns);
    const part = values.slice(start, Math.floor(((column + 1) * values.length) / columns));
    const mean = part.reduce((sum, value) => sum + value, 0) / part.length;
    return Math.max(1, Math.round((mean / highest) * size.rows * 8));
  });
  return Array.from({ length: size.rows }, (_, row) => {
    const floor = (size.rows - 1 - row) * 8;
    return heights.map((height) => eighths[Math.min(8, Math.max(0, height - floor))]).join("");
  });
}

function paint(style: "bold" | "dim", text: string): string {
  const isPlain = !stdout.isTTY || process.env["NO_COLOR"];
  return isPlain ? text : `\u001B[${style === "bold" ? 1 : 2}m${text}\u001B[22m`;
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}
