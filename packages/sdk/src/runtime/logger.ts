import type { Environment } from "./environment.js";

/** How much a message matters. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Where messages for people go; `console` and most logging libraries fit as they are. */
export type Logger = Readonly<Record<LogLevel, (message: string) => void>>;

const silent = (): void => {};

/**
 * The logger of a client that was given none: warnings and errors on stderr. `TINKER_LOG=info` or
 * `debug` adds those levels.
 */
export function defaultLogger(env: Environment): Logger {
  const wanted = env["TINKER_LOG"]?.toLowerCase();
  const write = (level: LogLevel) => (message: string) =>
    console.warn(`tinker-ts ${level}: ${message}`);
  return {
    debug: wanted === "debug" ? write("debug") : silent,
    info: wanted === "debug" || wanted === "info" ? write("info") : silent,
    warn: write("warn"),
    error: write("error"),
  };
}
