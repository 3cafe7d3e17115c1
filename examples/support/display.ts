import { stdout } from "node:process";
import type { Exchange } from "./task.js";

const barWidth = 28;
const blocks = "▁▂▃▄▅▆▇█".split("");

/** Tells how training goes: a live bar and curve on a screen, plain lines in a log. */
export class Display {
  readonly #startedAt = performance.now();
  readonly #losses: number[] = [];

  /** Says something. */
  say(text = ""): void {
    stdout.write(`${text}\n`);
  }

  /** Begins a part. */
  title(text: string): void {
    this.say(`\n${this.#bold(text)}`);
  }

  /** Tells of a finished step. */
  step(done: number, steps: number, loss: number): void {
    this.#losses.push(loss);
    const facts = `step ${String(done).padStart(String(steps).length)}/${steps}  loss ${loss.toFixed(3)}  ${this.seconds}`;
    if (!stdout.isTTY) {
      if (done % Math.ceil(steps / 10) === 0 || done === steps) this.say(`  ${facts}`);
      return;
    }
    const full = Math.round((done / steps) * barWidth);
    const bar = `${"━".repeat(full)}${this.#dim("━".repeat(barWidth - full))}`;
    stdout.write(`\r\u001B[2K  ${bar} ${facts}  ${this.#curve(20)}${done === steps ? "\n" : ""}`);
  }

  /** Shows the whole loss curve, from the first step to the last. */
  curve(): void {
    const first = this.#losses[0] ?? 0;
    const last = this.#losses.at(-1) ?? 0;
    this.say(`  loss ${first.toFixed(3)} ${this.#curve(48)} ${last.toFixed(3)}`);
  }

  /** Shows some answers of two models side by side, with what was wanted. */
  compare(exam: readonly Exchange[], before: readonly string[], after: readonly string[]): void {
    for (const [index, { question, answer }] of exam.slice(0, 4).entries()) {
      const mark = after[index] === answer ? "✓" : `✗ wanted ${answer}`;
      this.say(`  ${question}`);
      this.say(`    before: ${this.#dim(short(before[index] ?? ""))}`);
      this.say(`    after:  ${this.#bold(short(after[index] ?? ""))} ${mark}`);
    }
  }

  /** Time since the program started. */
  get seconds(): string {
    return `${((performance.now() - this.#startedAt) / 1000).toFixed(1)} s`;
  }

  #curve(width: number): string {
    const count = Math.min(width, this.#losses.length);
    const highest = Math.max(...this.#losses);
    return Array.from({ length: count }, (_, column) => {
      const from = Math.floor((column * this.#losses.length) / count);
      const to = Math.max(from + 1, Math.floor(((column + 1) * this.#losses.length) / count));
      const part = this.#losses.slice(from, to);
      const mean = part.reduce((sum, loss) => sum + loss, 0) / part.length;
      return blocks[Math.min(7, Math.floor((mean / highest) * 8))];
    }).join("");
  }

  #bold(text: string): string {
    return this.#paint(1, text);
  }

  #dim(text: string): string {
    return this.#paint(2, text);
  }

  #paint(code: number, text: string): string {
    const isPlain = !stdout.isTTY || process.env["NO_COLOR"];
    return isPlain ? text : `\u001B[${code}m${text}\u001B[22m`;
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

function short(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}
