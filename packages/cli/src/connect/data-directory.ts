import { homedir } from "node:os";
import path from "node:path";
import type { Terminal } from "../terminal/terminal.js";

/** The folder where servers and `local:` keep everything, and the command line what it remembers. */
export function dataDirectory(env: Terminal["env"]): string {
  return path.resolve(env["TINKER_TS_DATA_DIR"] || path.join(homedir(), ".tinker-ts"));
}
