import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { root } from "./source-graph.js";

const compiled = path.join(root, "packages/cli/dist/examples");

/** Runs an example with the embedded engine on a data directory; it ends with 1, which is an error here, when its result is not there. */
export async function runExample(
  example: string,
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const settings = {
    TINKER_BASE_URL: "local:",
    TINKER_TS_DATA_DIR: dataDir,
    TINKER_TS_IN_PROCESS: "1",
    ...env,
  };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [path.join(compiled, `${example}.js`)],
    { env: { PATH: process.env["PATH"], HOME: dataDir, ...settings } },
  );
  return stdout;
}
