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

/** The chosen format. */
export interface OutputOptions {
  readonly format: "table" | "json";
  /** Short for the format of that name. */
  readonly json: boolean;
  readonly quiet: boolean;
}

/**
 * The output of a command: results on standard output in the chosen format, notes and progress on standard error, unless
 * the output is JSON or quiet.
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

  /** True when progress and notes are shown. */
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

  /** Prints a note on standard error; not with JSON or --quiet. */
  note(text: string): void {
    if (this.isLoud) this.#terminal.err(`${text}\n`);
  }

  /** Shows the progress of long work. */
  progress(label: string): Progress {
    if (!this.isLoud) return noProgress;
    return showProgress(label, this.#terminal, styleFor(this.#terminal, "err"));
  }
}
