import { styleFor, type Style } from "../terminal/style.js";
import type { Terminal } from "../terminal/terminal.js";
import { jsonText } from "./json-text.js";
import { noProgress, showProgress, type Progress } from "./progress.js";
import { renderTable, type Table } from "./table.js";

/** The two forms of one result. */
export interface Result {
  readonly json: () => unknown;
  readonly table: () => Table;
}

/** What was asked for. */
export interface OutputOptions {
  readonly format: "table" | "json";
  /** Short for the format of that name. */
  readonly json: boolean;
  readonly quiet: boolean;
}

/**
 * How a command tells things: results on standard output in the format that was asked for, everything
 * else on standard error, and that only where a person looks at it.
 */
export class Output {
  readonly isJson: boolean;
  readonly style: Style;
  readonly #terminal: Terminal;
  readonly #isQuiet: boolean;

  constructor(terminal: Terminal, options: OutputOptions) {
    this.#terminal = terminal;
    this.isJson = options.json || options.format === "json";
    this.#isQuiet = options.quiet;
    this.style = styleFor(terminal, "out");
  }

  /** Whether progress and notes are wanted. */
  get isLoud(): boolean {
    return !this.isJson && !this.#isQuiet;
  }

  /** Prints a result. */
  result({ json, table }: Result): void {
    if (this.isJson) return this.json(json());
    const { columns } = this.#terminal;
    const lines = renderTable(table(), { columns, bold: this.style.bold });
    this.#terminal.out(`${lines.join("\n")}\n`);
  }

  /** Prints JSON, whatever the format. */
  json(value: unknown, indent?: number): void {
    this.#terminal.out(`${jsonText(value, indent)}\n`);
  }

  /** Prints a line of plain text, whatever the format. */
  line(text: string): void {
    this.#terminal.out(`${text}\n`);
  }

  /** Says something on the side; not with JSON and not with --quiet. */
  note(text: string): void {
    if (this.isLoud) this.#terminal.err(`${text}\n`);
  }

  /** Shows how far long work is. */
  progress(label: string): Progress {
    if (!this.isLoud) return noProgress;
    return showProgress(label, this.#terminal, styleFor(this.#terminal, "err"));
  }
}
