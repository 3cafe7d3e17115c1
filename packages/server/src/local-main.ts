import { startLocalServer, type RunningServer } from "./start-server.js";
import { DataDirectoryInUseError } from "./store/data-lock.js";
import { inUseExitCode, unusedMs } from "./local/join-local-server.js";

/*
 * The server that programs with `local:` share, one per data directory. The first of them starts it; it ends when
 * no program has been connected for a while, or when `tinker-ts serve` takes the data directory.
 */

const [dataDir = ""] = process.argv.slice(2);
let server: RunningServer | undefined;
let isEnding = false;

async function end(): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  await server?.close();
  process.exit(0);
}

for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void end());
// A terminal that is closed is the end of its programs, not of this one.
process.on("SIGHUP", () => {});

try {
  server = await startLocalServer({ dataDir }, unusedMs, () => void end());
} catch (error) {
  if (error instanceof DataDirectoryInUseError) process.exit(inUseExitCode);
  throw error;
}
