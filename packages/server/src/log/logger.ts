/** How much is logged: every level includes those after it. */
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Values written after an event as `name=value`. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** One line per event, plain text: time, level, event, fields. */
export interface Logger {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error", "silent"];

let isGuarded = false;

/** A closed output must not crash the server. */
function writeToStandardError(line: string): void {
  if (!isGuarded) process.stderr.on("error", () => {});
  isGuarded = true;
  process.stderr.write(`${line}\n`);
}

/** Makes a logger that hands finished lines to `write`; without it they go to standard error. */
export function createLogger(
  minimum: LogLevel,
  write: (line: string) => void = writeToStandardError,
): Logger {
  const at = (level: LogLevel) => {
    if (levels.indexOf(level) < levels.indexOf(minimum)) return () => {};
    return (event: string, fields: LogFields = {}) => {
      write(`${new Date().toISOString()} ${level.padEnd(5)} ${event}${formatFields(fields)}`);
    };
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function formatFields(fields: LogFields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => ` ${name}=${formatValue(value)}`)
    .join("");
}

/** Quotes text that is not a single word, so that lines can be parsed and contain no line break. */
function formatValue(value: unknown): string {
  if (typeof value === "number") return String(Math.round(value * 1000) / 1000);
  const text = String(value);
  return /^[\w.:/@+,-]+$/.test(text) ? text : JSON.stringify(text);
}
