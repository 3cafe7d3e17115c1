import type { Terminal } from "./terminal.js";

/** Colours, or nothing where they are not wanted. */
export interface Style {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
}

const escape = "\u001B[";
const paint =
  (open: number, close: number) =>
  (text: string): string =>
    `${escape}${open}m${text}${escape}${close}m`;
const plain = (text: string): string => text;

/** Colours only on a screen, and never against NO_COLOR. */
export function hasColours({ env, isInteractive }: Terminal, stream: "out" | "err"): boolean {
  return isInteractive[stream] && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

/** The colours of a stream. */
export function styleFor(terminal: Terminal, stream: "out" | "err"): Style {
  if (!hasColours(terminal, stream))
    return { bold: plain, dim: plain, red: plain, green: plain, yellow: plain };
  return {
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
  };
}
