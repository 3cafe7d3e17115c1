export { main } from "./main.js";
export { exitCodes, runCli } from "./run-cli.js";
export type { Terminal } from "./terminal/terminal.js";
